/** Version 1, the commit of a step: all writes, if every cell that was read is unchanged. */

/** Locks that keys share: one commit may name a thousand keys, and a server has 6,400 locks. */
const LOCKS = 1024;
const TOKEN_MS = 600_000;
const LOG_MS = 86_400_000;

/**
 * Returns the function of a commit. Keys are locked before anything is written, whether they have a
 * row or not, in the order of their locks; then the rows of buckets, in the order in which
 * `consume_1` locks them. So two commits of one key get their transaction ids in the order of their
 * locks, which the log sorts by.
 */
export function commitFunction(schema: string): string {
  const slot = (pk: string, sk: string) => `hashtext(${pk} || chr(1) || ${sk}) & ${LOCKS - 1}`;
  const lockClass = `hashtext('${schema.replaceAll("'", "''")}.items')`;
  return `CREATE FUNCTION ${schema}.commit_1(p_reads jsonb, p_writes jsonb, p_token text,
  p_now bigint, p_waits boolean, p_lock_ms int) RETURNS text LANGUAGE plpgsql AS $zael$
DECLARE
  k record; w record; gone_pks text[] := '{}'; gone_sks text[] := '{}'; gone text;
BEGIN
  PERFORM set_config('lock_timeout', p_lock_ms::text, true);
  IF NOT p_waits THEN PERFORM set_config('synchronous_commit', 'off', true); END IF;
  FOR k IN SELECT q.slot, bool_or(q.is_write) AS is_write FROM (
      SELECT ${slot("(r->>0)", "(r->>1)")} AS slot, false AS is_write
        FROM jsonb_array_elements(p_reads) r
      UNION ALL
      SELECT ${slot("(r->>'pk')", "(r->>'sk')")}, true FROM jsonb_array_elements(p_writes) r
    ) q GROUP BY q.slot ORDER BY q.slot
  LOOP
    IF k.is_write THEN PERFORM pg_advisory_xact_lock(${lockClass}, k.slot);
    ELSE PERFORM pg_advisory_xact_lock_shared(${lockClass}, k.slot); END IF;
  END LOOP;
  PERFORM 1 FROM ${schema}.items x JOIN jsonb_array_elements(p_reads) r
    ON x.pk = r->>0 AND x.sk = r->>1 WHERE x.build IS NOT NULL
    ORDER BY x.pk, x.sk FOR NO KEY UPDATE OF x;
  IF p_token IS NOT NULL THEN
    PERFORM 1 FROM ${schema}.tokens t WHERE t.token = p_token AND t.at > p_now - ${TOKEN_MS};
    IF FOUND THEN RETURN 'repeated'; END IF;
  END IF;
  PERFORM 1 FROM jsonb_array_elements(p_reads) r LEFT JOIN ${schema}.items x
    ON x.pk = r->>0 AND x.sk = r->>1 WHERE x.xmin::text IS DISTINCT FROM r->>2;
  IF FOUND THEN RETURN 'changed'; END IF;
  IF jsonb_array_length(p_writes) = 0 THEN RETURN 'done'; END IF;
  FOR k IN SELECT x.pk, x.sk FROM ${schema}.items x WHERE x.ttl < p_now / 1000
    ORDER BY x.ttl LIMIT 2 * jsonb_array_length(p_writes)
  LOOP
    -- A key that another commit holds stays for the next one.
    IF pg_try_advisory_xact_lock(${lockClass}, ${slot("k.pk", "k.sk")}) THEN
      gone_pks := gone_pks || k.pk; gone_sks := gone_sks || k.sk;
    END IF;
  END LOOP;
  IF p_token IS NOT NULL THEN
    INSERT INTO ${schema}.tokens AS t VALUES (p_token, p_now)
      ON CONFLICT (token) DO UPDATE SET at = excluded.at WHERE t.at <= p_now - ${TOKEN_MS};
    IF NOT FOUND THEN RETURN 'repeated'; END IF;
    DELETE FROM ${schema}.tokens t WHERE t.token IN (SELECT o.token FROM ${schema}.tokens o
      WHERE o.at <= p_now - ${TOKEN_MS} ORDER BY o.at LIMIT 4 FOR UPDATE SKIP LOCKED);
  END IF;
  FOR w IN SELECT * FROM jsonb_to_recordset(p_writes) AS v (pk text, sk text, before text,
    after text, g text[], ttl bigint, version bigint, log boolean, build text, parent text,
    cascades boolean, until bigint, cap bigint[], refill bigint[], period bigint[], at bigint[], tok bigint[],
    rem bigint[], used bigint[], events bigint, held text)
  LOOP
    IF w.after IS NULL THEN
      DELETE FROM ${schema}.items x WHERE x.pk = w.pk AND x.sk = w.sk;
    ELSE
      INSERT INTO ${schema}.items AS x VALUES (w.pk, w.sk, w.after, w.g[1], w.g[2], w.g[3],
        w.g[4], w.g[5], w.g[6], w.g[7], w.g[8], w.ttl, w.version, w.build, w.parent, w.cascades, w.until,
        w.cap, w.refill, w.period, w.at, w.tok, w.rem, w.used, w.events, nullif(w.held, ''))
      ON CONFLICT (pk, sk) DO UPDATE SET data = excluded.data, gsi1pk = excluded.gsi1pk,
        gsi1sk = excluded.gsi1sk, gsi2pk = excluded.gsi2pk, gsi2sk = excluded.gsi2sk,
        gsi3pk = excluded.gsi3pk, gsi3sk = excluded.gsi3sk, gsi4pk = excluded.gsi4pk,
        gsi4sk = excluded.gsi4sk, ttl = excluded.ttl, version = excluded.version,
        build = excluded.build, parent = excluded.parent, cascades = excluded.cascades, valid_until = excluded.valid_until,
        cap = excluded.cap, refill = excluded.refill, period = excluded.period, at = excluded.at,
        tok = excluded.tok, rem = excluded.rem, used = excluded.used, events = excluded.events,
        held = excluded.held;
    END IF;
    IF w.log THEN
      INSERT INTO ${schema}.changes (at, pk, sk, before, after, expired)
        VALUES (p_now, w.pk, w.sk, w.before, w.after, false);
    END IF;
  END LOOP;
  FOR i IN 1 .. cardinality(gone_pks) LOOP
    DELETE FROM ${schema}.items x WHERE x.pk = gone_pks[i] AND x.sk = gone_sks[i]
      AND x.ttl < p_now / 1000 RETURNING x.data INTO gone;
    IF FOUND THEN
      INSERT INTO ${schema}.changes (at, pk, sk, before, after, expired)
        VALUES (p_now, gone_pks[i], gone_sks[i], gone, NULL, true);
    END IF;
  END LOOP;
  SELECT c.at INTO k FROM ${schema}.changes c ORDER BY c.xid, c.seq LIMIT 1;
  IF k.at <= p_now - ${LOG_MS} THEN
    DELETE FROM ${schema}.changes c USING (SELECT o.xid, o.seq FROM ${schema}.changes o
      ORDER BY o.xid, o.seq LIMIT 2 * jsonb_array_length(p_writes) FOR UPDATE SKIP LOCKED) o
      WHERE c.xid = o.xid AND c.seq = o.seq AND c.at <= p_now - ${LOG_MS};
    UPDATE ${schema}.log_state SET is_trimmed = true WHERE NOT is_trimmed;
  END IF;
  RETURN 'done';
END $zael$;`;
}
