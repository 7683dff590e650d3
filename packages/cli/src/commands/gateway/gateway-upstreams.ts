/** The providers that the options of `gateway` name. */

import type { UpstreamSpec } from "@zae-limiter/gateway/upstreams.ts";
import type { GatewayFile } from "@zae-limiter/gateway/upstreams-file.ts";
import { type Call, CommandFailure, UsageError } from "../../frame/command.ts";
import { counted } from "../../terminal/limit-text.ts";
import { problemLine, textOf } from "../limits/limits-file.ts";

export interface UpstreamOptions {
  readonly upstream?: string;
  readonly config?: string;
  readonly open?: true;
  readonly keyless?: true;
  readonly tag: readonly string[];
}

/** Providers whose APIs are all below `/v1`. */
const VERSIONED: ReadonlySet<string> = new Set(["api.openai.com", "api.anthropic.com"]);

export async function configOf(call: Call<UpstreamOptions>): Promise<GatewayFile> {
  const { options, terminal } = call;
  const { upstream, config, open = false, keyless = false, tag: tags } = options;
  if (config === undefined && upstream !== undefined) {
    const { checkUpstream } = await import("@zae-limiter/gateway/upstreams.ts");
    const given = keyless ? { url: upstream, key: "none" } : { url: upstream };
    return { upstreams: [checkUpstream(given, terminal.env, open)], tags, webhooks: [] };
  }
  if (config === undefined || upstream !== undefined) {
    throw new UsageError("expected --upstream or --config, and not both");
  }
  if (keyless) {
    throw new UsageError("--keyless is for --upstream; in a file, write key: none for an upstream");
  }
  if (tags.length > 0) throw new UsageError("--tag is for --upstream; a file has a list of tags");
  return readConfig(config, call);
}

async function readConfig(file: string, call: Call<UpstreamOptions>): Promise<GatewayFile> {
  const { options, terminal } = call;
  const { parseUpstreams } = await import("@zae-limiter/gateway/upstreams-file.ts");
  const isOpen = options.open === true;
  const read = (text: string) => parseUpstreams(text, terminal.env, isOpen);
  return readOrSay(file, call, "the gateway did not start", read);
}

/** Reads the file of a gateway, or says in a line each what is wrong in it. */
export async function readOrSay<T>(
  file: string,
  { json, note }: Pick<Call<unknown>, "json" | "note">,
  outcome: string,
  read: (text: string) => T,
): Promise<T> {
  const { InvalidUpstreamsError } = await import("@zae-limiter/gateway/upstreams-file.ts");
  try {
    return read(textOf(file));
  } catch (error) {
    if (!(error instanceof InvalidUpstreamsError)) throw error;
    const lines = error.problems.map((problem) => problemLine(file, problem));
    if (json) throw new CommandFailure(lines.join("; "));
    for (const line of lines) note(line);
    const count = counted(lines.length, "problem");
    throw new CommandFailure(`${file} has ${count}; ${outcome}`);
  }
}

/** Returns the whole URL, without a slash at its end. */
export function addressOf({ href }: URL): string {
  return href.replace(/\/$/, "");
}

/** Returns a line for each upstream that lacks the path of the provider's API. */
export function pathWarnings(upstreams: readonly Pick<UpstreamSpec, "url">[]): string[] {
  return upstreams
    .filter(({ url }) => VERSIONED.has(url.hostname) && !url.pathname.startsWith("/v1"))
    .map(({ url }) => {
      const address = addressOf(url);
      return (
        `Warning: the upstream ${address} lacks /v1, so that calls go to ` +
        `${address}/chat/completions and the like. Use ${url.origin}/v1`
      );
    });
}
