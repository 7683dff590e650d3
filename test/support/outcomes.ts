/** How calls end: the helpers of the limiter's contract, which other tests use too. */

export {
  failureOf,
  invalidityOf,
  lines,
  refusalOf,
} from "@zae-limiter/testing/limiter-contract/outcomes.ts";
