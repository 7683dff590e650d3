/** A folder outside the project where examples are compiled and run as a user's files. */

import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { pathToFileURL } from "node:url";
import { format } from "node:util";
import { builtPath } from "../../scripts/entry-points.mjs";
import type { Example } from "./extract.ts";

/** The compiled sources, where `npm test` has made them. */
const COMPILED = process.env.ZAEL_COMPILED;

/** Output of an example at one of its `console.log`, and the output that its comment promises. */
export interface Printed {
  readonly line: number;
  readonly text: readonly string[];
  readonly expected: string | undefined;
}

const PRINT = "__printFromExample";
const EXPECTED_PATTERN = /console\.log\(.*\);?\s*\/\/ (.*)$/;
/** A complaint about a file that is not an example. */
const IN_SOURCE_PATTERN = /^(?!\S*example-\d+\.mts)\S+\(\d+,\d+\): /;

export class Workshop {
  readonly folder = mkdtempSync(join(tmpdir(), "examples-"));
  readonly #root: string;
  /** The source file of each import: `zae-limiter` is `src/index.ts`. */
  readonly #entries: ReadonlyMap<string, string>;

  constructor(root: string, entries: ReadonlyMap<string, string>) {
    this.#root = root;
    this.#entries = new Map([...entries].map(([name, path]) => [name, join(root, path)]));
  }

  /** The compiler's complaints about all examples, at their places in the source. */
  typeErrors(examples: readonly Example[]): string[] {
    const folder = join(this.folder, "types");
    mkdirSync(folder, { recursive: true });
    for (const [index, { code }] of examples.entries()) {
      // An example without imports would be a script, whose names are global.
      writeFileSync(join(folder, `example-${index}.mts`), `${code}\nexport {};\n`);
    }
    const paths = Object.fromEntries([...this.#entries].map(([name, path]) => [name, [path]]));
    const config = {
      extends: join(this.#root, "tsconfig.json"),
      compilerOptions: {
        paths,
        typeRoots: [join(this.#root, "node_modules/@types")],
        // An example may end where the reader goes on.
        noUnusedLocals: false,
        noUnusedParameters: false,
      },
      include: ["*.mts"],
    };
    writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(config));
    const compiler = join(this.#root, "node_modules/typescript/bin/tsc");
    const { stdout, stderr } = spawnSync(
      process.execPath,
      [compiler, "--pretty", "false", "-p", folder],
      { cwd: folder, encoding: "utf8" },
    );
    // Errors in the source itself are found by the compiler's own run over the project.
    return `${stdout}${stderr}`
      .split(/\n(?=\S)/)
      .map((message) => message.trim())
      .filter((message) => message !== "" && !IN_SOURCE_PATTERN.test(message))
      .map((message) => atSource(message, examples));
  }

  /** Runs an example and returns what it printed. */
  async run(example: Example, number: number): Promise<Printed[]> {
    const printed: Printed[] = [];
    const texts: string[][] = [];
    const lines = example.code.split("\n").map((line, index) => {
      if (!line.includes("console.log(")) return line;
      const text: string[] = [];
      const expected = EXPECTED_PATTERN.exec(line)?.[1]?.trim();
      printed.push({ line: example.line + index, text, expected });
      texts.push(text);
      return line.replaceAll("console.log(", `globalThis.${PRINT}(${texts.length - 1}, `);
    });
    const file = join(this.folder, `example-${number}.ts`);
    writeFileSync(file, this.#resolved(lines.join("\n")));
    const print = (place: number, ...values: unknown[]) => {
      texts[place]?.push(format(...values));
    };
    Object.assign(globalThis, { [PRINT]: print });
    try {
      await import(/* @vite-ignore */ pathToFileURL(file).href);
    } finally {
      Reflect.deleteProperty(globalThis, PRINT);
    }
    return printed;
  }

  close(): void {
    rmSync(this.folder, { recursive: true });
  }

  /** Examples load the modules that the tests load: two copies of a class are two classes. */
  #loaded(path: string): string {
    if (COMPILED === undefined) return path;
    const built = builtPath(relative(this.#root, path)).replace(/\.ts$/, ".js");
    return join(COMPILED, built);
  }

  #resolved(code: string): string {
    return code.replaceAll(/(from\s+|import\()(['"])([^'"]+)\2/g, (whole, before, _, name) => {
      const path = this.#entries.get(name);
      return path === undefined ? whole : `${before}${JSON.stringify(this.#loaded(path))}`;
    });
  }
}

/** `example-3.mts(2,7): error …` is a line of the source file that contains example 3. */
function atSource(message: string, examples: readonly Example[]): string {
  return message.replace(/^.*example-(\d+)\.mts\((\d+),(\d+)\)/, (whole, index, line) => {
    const example = examples[Number(index)];
    if (example === undefined) return whole;
    return `${example.path}:${example.line + Number(line) - 1}`;
  });
}
