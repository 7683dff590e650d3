/** Writes docs/reference/cli.md from the commands themselves. */

import { isGroup, type Leaf, type OptionSpec, type Shape } from "@zae-limiter/cli/frame/command.ts";
import { COMMON_OPTIONS, ownOptions, storeOptions } from "@zae-limiter/cli/frame/options.ts";
import { type Branch, loadTree } from "@zae-limiter/cli/frame/registry.ts";
import { NAMESPACE_OPTION, STORE_OPTIONS } from "@zae-limiter/cli/store/store-options.ts";

const COLUMNS = 100;

const INTRODUCTION = `# The command line

This page is generated from the commands; \`zae-limiter <command> --help\` says the same.

\`\`\`sh
zae-limiter system set-limits -l rpm:100 -l tpm:10000   # in the folder you are in
zae-limiter acquire key-1 gpt-4 -c rpm=1 -c tpm=500
zae-limiter peek key-1 gpt-4
\`\`\`

## Which store

Every command that works on a store takes these options, before or after its name:

@STORE@

The first of these that is given names the store: \`--url\`; \`--name\`, \`--region\` or \`--endpoint-url\`,
which mean a table on DynamoDB and replace that part of a \`ZAEL_URL\` for DynamoDB; \`ZAEL_URL\`;
\`ZAEL_STACK\`, the name of a table; else the file \`.zae-limiter/limits.db\` in the current folder.

Commands that read change nothing: they create no file, no namespace and no table. Commands that
write create the file and the namespace of an embedded store when they are missing. On DynamoDB,
namespaces are registered with \`namespace register\` or by \`limits apply\`.

## Output

Results go to stdout; notes, progress, questions and errors go to stderr. Colours are for terminals,
and never there when \`NO_COLOR\` is set. Every command has:

@COMMON@

The JSON of each command is shown with it: the types are \`text\`, \`number\`, \`boolean\`, \`object\` and
\`null\`. Members may be added in later versions; none is renamed or removed. Times are
\`YYYY-MM-DDTHH:MM:SSZ\`. An error is \`{"error": code, "message": text}\` on stderr.

## Exit codes

| code | meaning |
|---|---|
| 0 | done |
| 1 | failed: a value that is not allowed, something that does not exist, a declined question |
| 2 | the command line cannot be read |
| 3 | a limit is exceeded; nothing was consumed |
| 4 | the store does not answer |
| 5 | what is stored is not what the file says (\`limits diff\`) |
| 130 | ended by Ctrl-C; 143 and 129 by other signals |

A command that asks for confirmation reads one line from stdin, so \`yes | zae-limiter …\` works;
\`--yes\` skips the question. Commands that a message suggests repeat the options that name the store:
pasted into a shell, they work on the same store and namespace.
`;

/** The whole page. */
export async function referencePage(): Promise<string> {
  const tree = (await loadTree()).filter(({ entry }) => entry.shortFor === undefined);
  const headings = [...new Set(tree.map(({ entry }) => entry.heading))];
  const introduction = INTRODUCTION.replace(
    "@STORE@",
    optionTable([...STORE_OPTIONS, NAMESPACE_OPTION]),
  ).replace("@COMMON@", optionTable(COMMON_OPTIONS));
  const parts = headings.map((heading) => {
    const branches = tree.filter(({ entry }) => entry.heading === heading);
    return `## ${heading.replace(/:$/, "")}\n\n${branches.map(branchPart).join("\n")}`;
  });
  return `${[introduction, ...parts].join("\n").trimEnd()}\n`;
}

function branchPart({ node }: Branch): string {
  if (!isGroup(node)) return leafPart("", node);
  const parts = node.commands.map((leaf) => leafPart(`${node.name} `, leaf));
  return [...(node.details === undefined ? [] : [`${wrapped(node.details)}\n`]), ...parts].join(
    "\n",
  );
}

function leafPart(before: string, leaf: Leaf): string {
  const names = (leaf.arguments ?? []).map(({ name }) => ` ${name}`).join("");
  const own = ownOptions(leaf);
  const store = storeOptions(leaf);
  const blocks = [
    `### \`${before}${leaf.name}${names}\``,
    wrapped(`${capital(leaf.summary)}. ${leaf.details ?? ""}`.trim()),
    leaf.alias === undefined ? "" : `\`${before}${leaf.alias}\` is the same command.`,
    argumentTable(leaf),
    own.length === 0 ? "" : optionTable(own),
    storeLine(store.length, store.includes(NAMESPACE_OPTION)),
    leaf.examples === undefined
      ? ""
      : fenced("sh", leaf.examples.map((example) => `zae-limiter ${example}`).join("\n")),
    fenced("json", shapeText(leaf.json, 0)),
  ];
  return `${blocks.filter((block) => block !== "").join("\n\n")}\n`;
}

function storeLine(count: number, namespaced: boolean): string {
  if (count === 0) return "";
  return namespaced ? "" : "It works on the store as a whole: there is no `--namespace`.";
}

function argumentTable({ arguments: specs = [] }: Leaf): string {
  if (specs.length === 0) return "";
  const rows = specs.map(({ name, text, choices }) => `| \`${name}\` | ${text}${oneOf(choices)} |`);
  return ["| argument | meaning |", "|---|---|", ...rows].join("\n");
}

function optionTable(options: readonly OptionSpec[]): string {
  const rows = options.map((spec) => {
    const required = spec.required === true ? "; required" : "";
    const fallback =
      spec.default === undefined || spec.default === false ? "" : `; default ${spec.default}`;
    const text = `${spec.text}${oneOf(spec.choices)}${required}${fallback}`.replaceAll("|", "\\|");
    return `| \`${spec.flags}\` | ${text.replaceAll("<", "\\<")} |`;
  });
  return ["| option | meaning |", "|---|---|", ...rows].join("\n");
}

function oneOf(choices: readonly string[] | undefined): string {
  return choices === undefined ? "" : `: ${choices.join(", ")}`;
}

/** On one line where that fits. */
function shapeText(shape: Shape, indent: number): string {
  const inline = inlineShape(shape);
  if (inline.length + indent <= COLUMNS - 20 || typeof shape === "string") return inline;
  const pad = " ".repeat(indent);
  if (isList(shape)) return `[\n${pad}  ${shapeText(shape[0], indent + 2)}\n${pad}]`;
  const members = Object.entries(shape).map(
    ([name, part]) => `${pad}  "${name}": ${shapeText(part, indent + 2)}`,
  );
  return `{\n${members.join(",\n")}\n${pad}}`;
}

function inlineShape(shape: Shape): string {
  if (typeof shape === "string") return JSON.stringify(shape);
  if (isList(shape)) return `[${inlineShape(shape[0])}]`;
  const members = Object.entries(shape).map(([name, part]) => `"${name}": ${inlineShape(part)}`);
  return `{ ${members.join(", ")} }`;
}

function isList(shape: Shape): shape is readonly [Shape] {
  return Array.isArray(shape);
}

/** Sentences in lines that are not too long; lines that were broken on purpose stay so. */
function wrapped(text: string): string {
  return text
    .split("\n")
    .map((line) => {
      const lines = [""];
      for (const word of line.split(" ")) {
        const last = lines.at(-1) ?? "";
        if (last !== "" && last.length + word.length + 1 > COLUMNS) lines.push(word);
        else lines[lines.length - 1] = last === "" ? word : `${last} ${word}`;
      }
      return lines.join("\n");
    })
    .join("\n");
}

function fenced(language: string, text: string): string {
  return `\`\`\`${language}\n${text}\n\`\`\``;
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
