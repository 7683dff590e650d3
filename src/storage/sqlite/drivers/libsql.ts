/** The package libsql: prebuilt for every platform, and installed along unless that was refused. */

import type { Connect, Connection } from "../driver.ts";

type Constructor = new (path: string) => Connection;

export async function loadLibsql(): Promise<Connect> {
  const { default: Database } = (await import("libsql")) as unknown as { default: Constructor };
  return (path) => {
    const database = new Database(path);
    return {
      prepare: (sql) => database.prepare(sql),
      exec: (sql) => database.exec(sql),
      close: () => {
        // The file stays open until the last statement is garbage, so the write-ahead log is not
        // folded into it by closing. Where others still use the file this does nothing.
        database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
        database.close();
      },
    };
  };
}
