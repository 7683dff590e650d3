/** An archive in a folder of this machine. */

import { mkdir, rename, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { ArchiveSink } from "./audit-archive.ts";

export class FolderArchive implements ArchiveSink {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Nobody ever sees half an object, not even after a crash. */
  async put(key: string, body: Uint8Array): Promise<void> {
    const path = join(this.#folder, key);
    await mkdir(dirname(path), { recursive: true });
    const draft = `${path}.${process.pid}.part`;
    await writeFile(draft, body);
    await rename(draft, path);
  }
}
