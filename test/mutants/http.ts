/** Mutants of the middlewares. */

import type { Mutant } from "./mutant.ts";

export const HTTP: readonly Mutant[] = [
  {
    name: "unavailable-keeps-earlier",
    breaks: "A 503 of a later middleware does not refund what an earlier one consumed.",
    file: "packages/limiter/src/http/gate.ts",
    from: 'await turnBackAll(request);\n      return { kind: "answered", answer: unavailableAnswer() };',
    to: 'return { kind: "answered", answer: unavailableAnswer() };',
    caughtBy: ["packages/limiter/test/contract/http/failing.test.ts"],
  },
  {
    name: "refused-request-keeps-lease",
    breaks: "`leaseOf` returns the ended lease of a request that was refused.",
    file: "packages/limiter/src/http/passage.ts",
    from: "if (all.length > 0) passing[PASSAGE] = undefined;",
    to: "",
    caughtBy: ["packages/limiter/test/contract/http/web.test.ts"],
  },
];
