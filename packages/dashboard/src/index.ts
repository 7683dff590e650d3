/** `zae-limiter/dashboard`: the dashboard as a web-standard fetch handler. */

export { dashboard } from "./dashboard.ts";
export type { DashboardOptions } from "./options.ts";
