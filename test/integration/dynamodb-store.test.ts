import { expect, it } from "vitest";
import { describeEngines } from "../engines/engines.ts";
describeEngines("x", (e) => { it("runs", () => { console.log(e); expect(e.endpoint).toBeTruthy(); }); });
