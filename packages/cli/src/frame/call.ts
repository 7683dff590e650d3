/** Runs one command: gives it what it needs, prints its result, closes what it opened. */

import { defined } from "@zae-limiter/limiter/base/defined.ts";
import type { OpenStores } from "../store/open-store.ts";
import { defaultPrincipal, PRINCIPAL_OPTION, type PrincipalOptions } from "../store/principal.ts";
import type { StoreOptions } from "../store/store-options.ts";
import type { Terminal } from "../terminal/terminal.ts";
import type { Access, Call, Finished, Leaf, Result } from "./command.ts";
import { CommandFailure, UsageError } from "./command.ts";
import { EXIT } from "./exit-codes.ts";
import { failureOf } from "./failure.ts";
import { namespaceHint, storeHint } from "./hint.ts";

interface CommonOptions {
  readonly json?: boolean;
  readonly debug?: boolean;
  readonly yes?: boolean;
}

/** Runs a command that was read from the command line; ends with its exit code. */
export async function callLeaf(
  leaf: Leaf,
  path: string,
  args: readonly string[],
  options: CommonOptions & StoreOptions,
  terminal: Terminal,
): Promise<number> {
  const lines = new StatusLine(terminal);
  const note = (text: string) => lines.note(text);
  let stores: OpenStores | undefined;
  const openStores = async (): Promise<OpenStores> => {
    if (stores !== undefined) return stores;
    const [{ storePlace }, { OpenStores }] = await Promise.all([
      import("../store/store-options.ts"),
      import("../store/open-store.ts"),
    ]);
    const place = storePlace(options, terminal);
    if (place.remark !== undefined) note(place.remark);
    stores = new OpenStores(place, note);
    return stores;
  };
  const accessOf = (access: Access | undefined): Access => access ?? leaf.store ?? "read";
  const call: Call<never> = {
    args,
    options: options as never,
    json: options.json === true,
    terminal,
    open: async (access) => (await openStores()).repository(accessOf(access)),
    openStore: async (access) => (await openStores()).store(accessOf(access)),
    hint: (...words) => namespaceHint(words, options),
    storeHint: (...words) => storeHint(words, options),
    confirm: (question) => confirm(question, options, terminal),
    agree: async (question, done) => {
      if (await confirm(question, options, terminal)) return;
      throw new CommandFailure(`Aborted: nothing was ${done}`);
    },
    note,
    progress: (text) => lines.progress(text),
  };
  try {
    const result = await finishing(
      () => leaf.run({ ...call, options: withPrincipal(leaf, options, terminal) as never }),
      async () => {
        lines.clear();
        await stores?.close();
      },
    );
    return await print(result, call);
  } catch (error) {
    return report(error, path, options, terminal);
  }
}

/** Names the author of a change, where the command makes one and its line does not say. */
function withPrincipal(
  leaf: Leaf,
  options: CommonOptions & PrincipalOptions,
  { env }: Terminal,
): PrincipalOptions {
  if (options.principal !== undefined || !leaf.options?.includes(PRINCIPAL_OPTION)) return options;
  return { ...options, ...defined({ principal: defaultPrincipal(env) }) };
}

/** Reports an error; returns its exit code. */
export function report(
  error: unknown,
  path: string,
  options: CommonOptions & StoreOptions,
  terminal: Terminal,
): number {
  const { exitCode, code, line } = failureOf(error, options);
  if (line === undefined) return exitCode;
  const said = exitCode === EXIT.usage ? withAdvice(line, path) : line;
  if (options.json === true) {
    terminal.err(`${JSON.stringify({ error: code, message: said })}\n`);
  } else {
    terminal.err(`${terminal.errPalette.bad("zae-limiter:")} ${said}\n`);
  }
  if (options.debug === true) terminal.err(`${stackOf(error)}\n`);
  return exitCode;
}

function withAdvice(line: string, path: string): string {
  return line.endsWith("?") ? `${line} See ${path} --help` : `${line}; see ${path} --help`;
}

async function print(result: Result | Finished, { json, terminal }: Call<never>): Promise<number> {
  if (!("text" in result)) return result.code;
  const text = json ? JSON.stringify(result.json(), null, 2) : await result.text();
  if (text !== "") terminal.out(`${text}\n`);
  return result.code ?? EXIT.ok;
}

async function confirm(
  question: string,
  options: CommonOptions,
  terminal: Terminal,
): Promise<boolean> {
  if (options.yes === true) return true;
  const answer = await terminal.ask(question);
  if (answer !== undefined) return answer;
  throw new UsageError(`Cannot ask "${question}": stdin is not a terminal. Pass --yes to confirm`);
}

/** Runs the work, then the clean-up in any case; the first error is thrown. */
async function finishing<T>(work: () => Promise<T>, after: () => Promise<void>): Promise<T> {
  let result: T;
  try {
    result = await work();
  } catch (error) {
    await after().catch(() => undefined);
    throw error;
  }
  await after();
  return result;
}

/** Prints notes and progress to stderr. */
class StatusLine {
  readonly #terminal: Terminal;
  #shown = false;

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
  }

  note(text: string): void {
    this.clear();
    this.#terminal.err(`${this.#terminal.errPalette.faint(text)}\n`);
  }

  progress(text: string): void {
    this.clear();
    if (text === "" || !this.#terminal.errIsTerminal) return;
    this.#terminal.err(this.#terminal.errPalette.faint(text));
    this.#shown = true;
  }

  clear(): void {
    if (this.#shown) this.#terminal.err("\r\u001b[K");
    this.#shown = false;
  }
}

function stackOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const cause = error.cause === undefined ? "" : `\nCaused by: ${stackOf(error.cause)}`;
  return `${error.stack ?? error.message}${cause}`;
}
