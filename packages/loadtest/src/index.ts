/** `zae-limiter/loadtest`: scenarios for `zae-limiter loadtest`. */

export { defineLoad } from "./define-load.ts";
export type { Load, LoadContext, LoadSession, LoadUser, Wait } from "./load.ts";
