/** `dashboard`: a page in the browser on any store, until it is ended. */

import { checkedToken, DASHBOARD_OPTIONS, type DashboardFlags } from "../dashboard/options.ts";
import { type Call, leaf } from "../frame/command.ts";
import { PRINCIPAL_OPTION, type PrincipalOptions } from "../store/principal.ts";
import { interruptible } from "../terminal/interruption.ts";

type Options = DashboardFlags &
  PrincipalOptions & { readonly readOnly?: boolean; readonly token?: string };

export const dashboard = leaf<Options>({
  name: "dashboard",
  summary: "a page in the browser: buckets, limits, usage, audit",
  details:
    "Prints an address with a random token and opens it. Ctrl-C ends it, with 130. Changes are " +
    "written to the audit log with --principal. An address that " +
    "other machines reach needs --token. With --json, one object with the address.",
  options: [
    ...DASHBOARD_OPTIONS,
    { flags: "--read-only", text: "refuse every change" },
    { flags: "--token <secret>", text: "the token instead of a random one" },
    PRINCIPAL_OPTION,
  ],
  store: "write",
  examples: ["dashboard", "dashboard --read-only --port 8080 --no-open"],
  json: { url: "text" },
  run: (call) => interruptible(call.terminal, (signal) => serve(call, signal)),
});

async function serve(call: Call<Options>, signal: AbortSignal): Promise<never> {
  const { options, terminal, json } = call;
  const { readOnly = false } = options;
  const [{ serveDashboard }, { announce, ended }] = await Promise.all([
    import("@zae-limiter/dashboard/server/serve.ts"),
    import("../dashboard/announce.ts"),
  ]);
  const token = checkedToken(options.host, options.token);
  const repository = await call.open(readOnly ? "read" : "write");
  const served = await serveDashboard(repository, { ...options, token, readOnly });
  try {
    announce(served.url, terminal, { json, open: options.open });
    return await ended(signal);
  } finally {
    await served.close();
  }
}
