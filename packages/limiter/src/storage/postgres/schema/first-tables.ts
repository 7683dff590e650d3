/** Version 1, the tables: items with what the server decides warm calls by, tokens, the log. */

const TEXT = 'text COLLATE "C"';

/**
 * Returns the tables. A revision is `xmin`, the transaction that wrote the row: it costs no column,
 * and every write changes it. A bucket has its numbers in arrays, in the order of the names of its
 * limits. No index has a column that an acquire changes, and half of each page is free, so an
 * acquire replaces its row in the same page and touches no index.
 */
export function firstTables(schema: string): string {
  return `CREATE TABLE ${schema}.items (
  pk ${TEXT} NOT NULL,
  sk ${TEXT} NOT NULL,
  data text NOT NULL,
  gsi1pk ${TEXT}, gsi1sk ${TEXT}, gsi2pk ${TEXT}, gsi2sk ${TEXT},
  gsi3pk ${TEXT}, gsi3sk ${TEXT}, gsi4pk ${TEXT}, gsi4sk ${TEXT},
  ttl bigint,
  version bigint,
  build text, parent text, cascades boolean, valid_until bigint,
  cap bigint[], refill bigint[], period bigint[],
  at bigint[], tok bigint[], rem bigint[], used bigint[], events bigint, held text,
  PRIMARY KEY (pk, sk)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01,
  autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX items_gsi1 ON ${schema}.items (gsi1pk, gsi1sk, pk, sk) WHERE gsi1pk IS NOT NULL;
CREATE INDEX items_gsi2 ON ${schema}.items (gsi2pk, gsi2sk, pk, sk) WHERE gsi2pk IS NOT NULL;
CREATE INDEX items_gsi3 ON ${schema}.items (gsi3pk, gsi3sk, pk, sk) WHERE gsi3pk IS NOT NULL;
CREATE INDEX items_gsi4 ON ${schema}.items (gsi4pk, gsi4sk, pk, sk) WHERE gsi4pk IS NOT NULL;
CREATE INDEX items_ttl ON ${schema}.items (ttl) WHERE ttl IS NOT NULL;
CREATE TABLE ${schema}.changes (
  xid xid8 NOT NULL DEFAULT pg_current_xact_id(),
  seq bigint GENERATED ALWAYS AS IDENTITY,
  at bigint NOT NULL, pk text NOT NULL, sk text NOT NULL, before text, after text,
  expired boolean NOT NULL,
  PRIMARY KEY (xid, seq)
);
CREATE TABLE ${schema}.log_state (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  is_trimmed boolean NOT NULL DEFAULT false
);
INSERT INTO ${schema}.log_state DEFAULT VALUES;
CREATE TABLE ${schema}.tokens (token ${TEXT} PRIMARY KEY, at bigint NOT NULL);
CREATE INDEX tokens_at ON ${schema}.tokens (at);`;
}
