/** The package libsql, where the user installed it: prebuilt for every platform. */

import type { Connect, Connection } from "../driver.ts";

type Constructor = new (path: string) => Connection;

export async function loadLibsql(): Promise<Connect> {
  const { default: Database } = (await import("libsql")) as unknown as { default: Constructor };
  return (path) => {
    const database = new Database(path);
    return {
      losesBusyStatements: true,
      prepare: (sql) => database.prepare(sql),
      exec: (sql) => database.exec(sql),
      close: () => {
        // libsql keeps the file open until the last statement is garbage. What SQLite does when a
        // file is closed, folding the write-ahead log into it, is therefore done here.
        try {
          database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
        } catch {
          // Another process uses the file, or it is damaged. Closing continues in both cases.
        }
        database.close();
      },
    };
  };
}
