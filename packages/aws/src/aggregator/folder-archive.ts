/** An archive in a folder of this machine. */

import { link, mkdir, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { ArchiveSink } from "./audit-archive.ts";

export class FolderArchive implements ArchiveSink {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Stores an object as a whole, also after a crash, and never replaces another one. */
  async put(key: string, body: Uint8Array): Promise<void> {
    const path = join(this.#folder, key);
    await mkdir(dirname(path), { recursive: true });
    const draft = `${path}.${process.pid}.part`;
    await writeFile(draft, body);
    try {
      await link(draft, path);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    } finally {
      await rm(draft, { force: true });
    }
  }
}
