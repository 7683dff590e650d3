/** The page of a load test begins here. */

import { render } from "preact";
import { App } from "./app.tsx";
import { connect } from "./state.ts";

render(<App />, document.getElementById("app") as HTMLElement);
connect();
