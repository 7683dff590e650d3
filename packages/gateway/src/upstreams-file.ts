/** The file of a gateway, with the lines of everything that is wrong in it. */

import { ValidationError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { checkTag } from "@zae-limiter/limiter/llm/tags.ts";
import type { PlacedProblem } from "@zae-limiter/limiter/manifest/problem.ts";
import type { SignedWebhook } from "@zae-limiter/limiter/records/alerts/webhooks.ts";
import { isMap, isScalar, isSeq, LineCounter, type Node, parseDocument } from "yaml";
import { configuredWebhook } from "./alerts/configured-webhook.ts";
import { type Environment, readUpstream, type UpstreamSpec } from "./upstreams.ts";

const FIELDS = ["upstreams", "tags", "webhooks"];
const EXAMPLE = "upstreams: [{ url: https://api.openai.com/v1 }]";

/** The file cannot be used. */
export class InvalidUpstreamsError extends ValidationError {
  constructor(readonly problems: readonly PlacedProblem[]) {
    super("config", problems.length, problems.map(describeProblem).join("; "));
  }
}

/** The content of the file of a gateway. */
export interface GatewayFile {
  readonly upstreams: readonly UpstreamSpec[];
  /** Names of cost centres that clients may name. */
  readonly tags: readonly string[];
  /** Addresses that alerts are posted to, besides those that the namespace stores. */
  readonly webhooks: readonly SignedWebhook[];
}

/** Reads the file of a gateway in YAML or JSON; throws one error that names all problems. */
export function parseUpstreams(text: string, env: Environment, isOpen: boolean): GatewayFile {
  return parsed(text, (document, report) => ({
    upstreams: readAll(document, env, isOpen, report),
    tags: readTags(document, report),
    webhooks: readWebhooks(document, env, report),
  }));
}

/** Reads the webhooks of such a file alone, without the keys of its upstreams. */
export function parseWebhooks(text: string, env: Environment): readonly SignedWebhook[] {
  return parsed(text, (document, report) => readWebhooks(document, env, report));
}

function parsed<T>(text: string, read: (document: Parsed, report: Report) => T): T {
  const lineCounter = new LineCounter();
  const problems: PlacedProblem[] = [];
  const report: Report = (offset, message, path = []) => {
    const { line, col } = lineCounter.linePos(offset);
    problems.push({ path, message, line, column: col });
  };
  const document = parseDocument(text, { lineCounter, stringKeys: true, prettyErrors: false });
  for (const { pos, message } of document.errors) report(pos[0], message);
  const found = document.errors.length === 0 ? read(document, report) : undefined;
  if (problems.length === 0) return found as T;
  problems.sort((left, right) => (left.line ?? 0) - (right.line ?? 0));
  throw new InvalidUpstreamsError(problems);
}

type Parsed = ReturnType<typeof parseDocument>;
type Report = (offset: number, message: string, path?: readonly string[]) => void;

function readAll(
  document: Parsed,
  env: Environment,
  isOpen: boolean,
  report: Report,
): UpstreamSpec[] {
  const { contents } = document;
  const list: unknown = isMap(contents) ? contents.get("upstreams", true) : undefined;
  for (const { key } of isMap(contents) ? contents.items : []) {
    if (isScalar(key) && !FIELDS.includes(String(key.value))) {
      report(
        startOf(key),
        `there is no "${String(key.value)}" here; expected ${FIELDS.join(", ")}`,
      );
    }
  }
  if (!isSeq(list) || list.items.length === 0) {
    const at = isSeq(list) || isScalar(list) ? list : contents;
    report(startOf(at), `expected a list with at least one upstream, like ${EXAMPLE}`);
    return [];
  }
  return list.items.flatMap((item, index) => {
    const node = item as Node;
    const read = readUpstream(node.toJS(document), env, isOpen);
    if ("spec" in read) return [read.spec];
    for (const { path, error } of read.problems) {
      report(placeOf(node, path), error.reason, [`upstreams[${index}]${written(path)}`]);
    }
    return [];
  });
}

/** Reads the names of cost centres; a file may have none. */
function readTags(document: Parsed, report: Report): string[] {
  const form = "expected a list of names, like tags: [research, support]";
  return readList(document, "tags", form, report, (value) => checkTag("tag", value));
}

function readWebhooks(document: Parsed, env: Environment, report: Report): SignedWebhook[] {
  const form = "expected a list of { name, url, secret_env }";
  const names = new Set<string>();
  return readList(document, "webhooks", form, report, (value) => {
    const webhook = configuredWebhook(value, env);
    if (!names.has(webhook.name)) names.add(webhook.name);
    else throw new ValidationError("name", webhook.name, `"${webhook.name}" is given twice`);
    return webhook;
  });
}

/** Reads a list that a file may have; what is wrong with an entry is named with its line. */
function readList<T>(
  document: Parsed,
  name: string,
  form: string,
  report: Report,
  read: (value: unknown) => T,
): T[] {
  const { contents } = document;
  const list: unknown = isMap(contents) ? contents.get(name, true) : undefined;
  if (list === undefined || (isScalar(list) && list.value === null)) return [];
  if (!isSeq(list)) {
    report(startOf(list as Node), form, [name]);
    return [];
  }
  return list.items.flatMap((item, index) => {
    const node = item as Node;
    try {
      return [read(node.toJS(document))];
    } catch (error) {
      if (!(error instanceof ValidationError)) throw error;
      report(startOf(node), error.reason, [`${name}[${index}]`]);
      return [];
    }
  });
}

/** Returns where a field or an entry begins, or what should have it. */
function placeOf(node: Node, path: readonly (string | number)[]): number {
  let place: Node = node;
  let value: unknown = node;
  for (const step of path) {
    const pair = isMap(value) ? value.items.find(({ key }) => isNamed(key, step)) : undefined;
    const entry: unknown = isSeq(value) ? value.items[Number(step)] : pair?.key;
    if (entry === undefined) break;
    place = entry as Node;
    value = pair?.value;
  }
  return startOf(place);
}

function isNamed(key: unknown, name: string | number): boolean {
  return isScalar(key) && key.value === name;
}

/** Formats a path, such as `.aliases.gpt-4o[0]`. */
function written(path: readonly (string | number)[]): string {
  return path.map((step) => (typeof step === "number" ? `[${step}]` : `.${step}`)).join("");
}

function startOf(node: Node | null): number {
  return node?.range?.[0] ?? 0;
}

/** Formats a problem, such as `line 3: upstreams[0].url: expected …`. */
function describeProblem({ line, path, message }: PlacedProblem): string {
  const where = path.length === 0 ? "" : `${path.join(".")}: `;
  return `line ${line}: ${where}${message}`;
}
