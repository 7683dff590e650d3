/** How the file came to its present shape: one step per version, never edited afterwards. */

export interface Migration {
  /** `PRAGMA user_version` after it. */
  readonly version: number;
  readonly reason: string;
  readonly sql: string;
}

/** "zael": marks a file as ours in `PRAGMA application_id`. */
export const APPLICATION_ID = 0x7a61656c;

export const MIGRATIONS: readonly Migration[] = [
  {
    version: 1,
    reason: "items with their indexes, the feed of changes, tokens of transactions",
    // The indexes are partial, because most items are in one or two of them. An index ends with
    // the key of the table, so that pages can go on after any row. Numbers of changes never come
    // again without AUTOINCREMENT, too, because the newest change is always kept; it would cost
    // another page with every write.
    sql: `
      CREATE TABLE items (
        pk TEXT NOT NULL,
        sk TEXT NOT NULL,
        data TEXT NOT NULL,
        gsi1pk TEXT, gsi1sk TEXT,
        gsi2pk TEXT, gsi2sk TEXT,
        gsi3pk TEXT, gsi3sk TEXT,
        gsi4pk TEXT, gsi4sk TEXT,
        ttl INTEGER,
        PRIMARY KEY (pk, sk)
      ) WITHOUT ROWID;
      CREATE INDEX items_gsi1 ON items (gsi1pk, gsi1sk, pk, sk) WHERE gsi1pk IS NOT NULL;
      CREATE INDEX items_gsi2 ON items (gsi2pk, gsi2sk, pk, sk) WHERE gsi2pk IS NOT NULL;
      CREATE INDEX items_gsi3 ON items (gsi3pk, gsi3sk, pk, sk) WHERE gsi3pk IS NOT NULL;
      CREATE INDEX items_gsi4 ON items (gsi4pk, gsi4sk, pk, sk) WHERE gsi4pk IS NOT NULL;
      CREATE INDEX items_ttl ON items (ttl) WHERE ttl IS NOT NULL;
      CREATE TABLE changes (
        seq INTEGER PRIMARY KEY,
        at INTEGER NOT NULL,
        pk TEXT NOT NULL,
        sk TEXT NOT NULL,
        before TEXT,
        after TEXT,
        expired INTEGER NOT NULL
      );
      CREATE TABLE tokens (token TEXT PRIMARY KEY, at INTEGER NOT NULL) WITHOUT ROWID;
      CREATE INDEX tokens_at ON tokens (at);
    `,
  },
  {
    version: 2,
    reason: "buckets, one packed row each",
    sql: `
      CREATE TABLE buckets (
        namespace TEXT NOT NULL,
        entity TEXT NOT NULL,
        resource TEXT NOT NULL,
        state TEXT NOT NULL,
        ttl INTEGER,
        PRIMARY KEY (namespace, entity, resource)
      ) WITHOUT ROWID;
      CREATE INDEX buckets_resource ON buckets (namespace, resource, entity);
      CREATE INDEX buckets_ttl ON buckets (ttl) WHERE ttl IS NOT NULL;
    `,
  },
];
