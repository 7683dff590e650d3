/** Which local engine a command is about: that of a folder. */

import type { OptionSpec } from "../command.ts";
import { LOCAL_FOLDER } from "../local/local-folder.ts";
import { wholeNumber } from "../numbers.ts";

export const FOLDER_OPTION: OptionSpec = {
  flags: "--folder <path>",
  text: "where its state and logs are kept",
  default: LOCAL_FOLDER,
};

export interface FolderOptions {
  readonly folder: string;
}

/** That of DynamoDB Local. */
export const DEFAULT_PORT = 8000;

export const readPort = wholeNumber(0, 65_535);
