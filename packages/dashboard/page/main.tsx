/** The page begins here. */

import { render } from "preact";
import { App } from "./app.tsx";
import { connect, loadSession } from "./state.ts";

render(<App />, document.getElementById("app") as HTMLElement);
void loadSession();
connect();
