/** The option that names the folder of a local DynamoDB. */

import type { OptionSpec } from "../../frame/command.ts";
import { commandLine } from "../../frame/hint.ts";
import { LOCAL_FOLDER } from "../../local/local-folder.ts";
import { wholeNumber } from "../../terminal/numbers.ts";

export const FOLDER_OPTION: OptionSpec = {
  flags: "--folder <path>",
  text: "where its state and logs are kept",
  default: LOCAL_FOLDER,
};

export interface FolderOptions {
  readonly folder: string;
}

/** Returns a command for the local DynamoDB of the same folder, to suggest in a message. */
export function localHint(command: string, { folder }: FolderOptions): string {
  return commandLine(["local", command, ...(folder === LOCAL_FOLDER ? [] : ["--folder", folder])]);
}

export const DEFAULT_PORT = 8000;

export const readPort = wholeNumber(0, 65_535);
