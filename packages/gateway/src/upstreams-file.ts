/** The file of a gateway, with the lines of everything that is wrong in it. */

import { ValidationError } from "@zae-limiter/limiter/domain/errors/errors.ts";
import { checkTag } from "@zae-limiter/limiter/llm/tags.ts";
import type { PlacedProblem } from "@zae-limiter/limiter/manifest/problem.ts";
import { isMap, isScalar, isSeq, LineCounter, type Node, parseDocument } from "yaml";
import { type Environment, readUpstream, type UpstreamSpec } from "./upstreams.ts";

const FIELDS = ["upstreams", "tags"];
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
}

/** Reads a file of upstreams in YAML or JSON; throws one error that names all problems. */
export function parseUpstreams(text: string, env: Environment, isOpen: boolean): GatewayFile {
  const lineCounter = new LineCounter();
  const problems: PlacedProblem[] = [];
  const report: Report = (offset, message, path = []) => {
    const { line, col } = lineCounter.linePos(offset);
    problems.push({ path, message, line, column: col });
  };
  const document = parseDocument(text, { lineCounter, stringKeys: true, prettyErrors: false });
  for (const { pos, message } of document.errors) report(pos[0], message);
  const isReadable = document.errors.length === 0;
  const upstreams = isReadable ? readAll(document, env, isOpen, report) : [];
  const tags = isReadable ? readTags(document, report) : [];
  if (problems.length === 0) return { upstreams, tags };
  problems.sort((left, right) => (left.line ?? 0) - (right.line ?? 0));
  throw new InvalidUpstreamsError(problems);
}

type Report = (offset: number, message: string, path?: readonly string[]) => void;

function readAll(
  document: ReturnType<typeof parseDocument>,
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
function readTags({ contents }: ReturnType<typeof parseDocument>, report: Report): string[] {
  const list: unknown = isMap(contents) ? contents.get("tags", true) : undefined;
  if (list === undefined || (isScalar(list) && list.value === null)) return [];
  if (!isSeq(list)) {
    report(startOf(list as Node), "expected a list of names, like tags: [research, support]", [
      "tags",
    ]);
    return [];
  }
  return list.items.flatMap((item, index) => {
    try {
      return [checkTag("tag", isScalar(item) ? item.value : undefined)];
    } catch (error) {
      report(startOf(item as Node), (error as ValidationError).reason, [`tags[${index}]`]);
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
