/** The option that names the folder of a local store. */

import type { OptionSpec } from "../../frame/command.ts";
import { commandLine } from "../../frame/hint.ts";
import { LOCAL_FOLDER } from "../../local/local-folder.ts";
import { storeByName } from "../../local/stores/stores.ts";
import { wholeNumber } from "../../terminal/numbers.ts";

export const FOLDER_OPTION: OptionSpec = {
  flags: "--folder <path>",
  text: "where its state, logs and data are kept",
  default: LOCAL_FOLDER,
};

export interface FolderOptions {
  readonly folder: string;
}

/** Returns a command for the local store of the same folder, to suggest in a message. */
export function localHint(command: string, { folder }: FolderOptions): string {
  return commandLine(["local", command, ...(folder === LOCAL_FOLDER ? [] : ["--folder", folder])]);
}

/** The port of a store that does not run, and is taken for a DynamoDB. */
export const DEFAULT_PORT = storeByName("dynamodb").port;

export const readPort = wholeNumber(0, 65_535);
