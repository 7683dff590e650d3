/** `completion`: scripts that complete command lines in bash, zsh and fish. */

import { bashScript } from "../completion/bash.ts";
import { fishScript } from "../completion/fish.ts";
import { completionLines } from "../completion/lines.ts";
import { zshScript } from "../completion/zsh.ts";
import { leaf } from "../frame/command.ts";
import type { Branch } from "../frame/registry.ts";

const SCRIPTS = { bash: bashScript, zsh: zshScript, fish: fishScript } as const;
type Shell = keyof typeof SCRIPTS;

/** The tree is passed in: the command is a part of it itself. */
export function completionOf(loadTree: () => Promise<readonly Branch[]>) {
  return leaf({
    name: "completion",
    summary: "completion for bash, zsh and fish",
    details:
      'bash: add to ~/.bashrc:  eval "$(zae-limiter completion bash)"\n' +
      'zsh:  add to ~/.zshrc:   eval "$(zae-limiter completion zsh)"\n' +
      "fish: zae-limiter completion fish > ~/.config/fish/completions/zae-limiter.fish",
    arguments: [{ name: "<shell>", text: "the shell", choices: Object.keys(SCRIPTS) }],
    json: { shell: "text", script: "text" },
    run: async ({ args }) => {
      const [shell] = args as [Shell];
      const script = SCRIPTS[shell](completionLines(await loadTree()));
      return { json: () => ({ shell, script }), text: () => script.trimEnd() };
    },
  });
}
