/** The page begins here. */

import { render } from "preact";
import { App } from "./app.tsx";
import { showBidi } from "./bidi.ts";
import { connect, loadSession } from "./state.ts";

showBidi();
render(<App />, document.getElementById("app") as HTMLElement);
void loadSession();
connect();
