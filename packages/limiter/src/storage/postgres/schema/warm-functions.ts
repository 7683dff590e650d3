/** Version 1, warm calls: decided by the server, under the locks of their rows. */

const TOKEN_MS = 600_000;
/** Beyond it a product of bigints might not fit; `numeric` is exact, slow and rare. */
const PRODUCT_MAX = "4611686018427387904";
/** The deepest debt, `DEBT_MILLI_MAX` of `core/bucket.ts`. */
const DEBT_MAX = "8007199254740991";

/**
 * Refills limit `i` of a row until `now_ms`. A clock of the server behind the row earns nothing.
 */
const SETTLE = `e := greatest(now_ms - at[i], 0); t := tok[i];
      IF e <= ${PRODUCT_MAX} / refill[i] THEN
        parts := e * refill[i] + rem[i]; q := parts / period[i];
        IF q >= cap[i] - t THEN t := cap[i]; rem[i] := 0;
        ELSE t := t + q; rem[i] := parts - q * period[i]; END IF;
      ELSE
        big := e::numeric * refill[i] + rem[i];
        IF div(big, period[i]) >= cap[i] - t THEN t := cap[i]; rem[i] := 0;
        ELSE q := div(big, period[i]); t := t + q; rem[i] := big - q::numeric * period[i]; END IF;
      END IF;
      at[i] := at[i] + e;`;

const CLOCK = "coalesce(p_now, (extract(epoch FROM clock_timestamp()) * 1000)::bigint)";

/** Spends the token of a call that goes on from here, if no other one has, and forgets old ones. */
const spendToken = (schema: string, spent: string) => `INSERT INTO ${schema}.tokens AS y
    VALUES (p_token, now_ms) ON CONFLICT (token) DO UPDATE SET at = excluded.at
    WHERE y.at <= now_ms - ${TOKEN_MS};
  IF NOT FOUND THEN ${spent} END IF;
  DELETE FROM ${schema}.tokens y WHERE y.token IN (SELECT o.token FROM ${schema}.tokens o
    WHERE o.at <= now_ms - ${TOKEN_MS} ORDER BY o.at LIMIT 2 FOR UPDATE SKIP LOCKED);`;

/**
 * Returns the function that moves slots of an entry: the text of all entries after it; null, where
 * the entry has fewer than are given back.
 */
export function slotsFunction(schema: string): string {
  return `CREATE FUNCTION ${schema}.slots_1(p_held text, p_entry text, p_limit int, p_milli bigint)
RETURNS text LANGUAGE plpgsql IMMUTABLE AS $zael$
DECLARE
  others text := coalesce(p_held, ''); head text := ';' || p_entry || ' ' || p_limit || ' ';
  place int := strpos(others, head); milli bigint := 0;
BEGIN
  IF place > 0 THEN
    milli := split_part(substr(others, place + length(head)), ';', 1);
    others := left(others, place - 1) || substr(others, place + length(head || milli));
  END IF;
  milli := milli + p_milli;
  IF milli < 0 THEN RETURN NULL; END IF;
  IF others = '' THEN others := ';'; END IF;
  IF milli > 0 THEN RETURN head || milli || others; END IF;
  RETURN CASE WHEN others = ';' THEN '' ELSE others END;
END $zael$;`;
}

/**
 * Returns the function that decides a call. Legs come in the order of their keys. `o_state` is null
 * when a row is missing, was built from other limits, or is no longer valid; 2: the config of the
 * namespace has changed; 1: granted; 0: refused. In all cases but 1 nothing is written. `p_gates`
 * and `p_counted` are null where they are the same as `p_taken`. Time is read after each lock: a
 * call that waited must not use an earlier time than the call it waited for. Where limits have
 * periods, `o_ends` and `o_granted` say when they end, and what they have granted. `p_entries` and
 * `p_token` are null where no slots are taken; an entry with a `+` need not be there. It takes one
 * array: the server takes as long to read fifteen parameters as to decide.
 */
export function consumeFunction(schema: string): string {
  return `CREATE FUNCTION ${schema}.consume_1(p text[],
  OUT o_state int, OUT o_balances bigint[], OUT o_version bigint, OUT o_now bigint,
  OUT o_ends bigint[], OUT o_granted bigint[])
LANGUAGE plpgsql AS $zael$
DECLARE
  p_pks text[] := p[1]; p_sks text[] := p[2]; p_builds text[] := p[3]; p_parents text[] := p[4];
  p_cascades boolean[] := p[5]; p_gates bigint[] := p[6]; p_taken bigint[] := p[7];
  p_counted bigint[] := p[8]; p_events int[] := p[9]; p_config_pk text := p[10];
  p_config_sk text := p[11]; p_known bigint := p[12]; p_now bigint := p[13];
  p_waits boolean := p[14]; p_lock_ms int := p[15]; p_entries text[] := p[16];
  p_token text := p[17]; hld text; helds text[]; entry text;
  bld text; par text; casc boolean; until bigint; cap bigint[]; refill bigint[]; period bigint[];
  at bigint[]; tok bigint[]; rem bigint[]; used bigint[];
  e bigint; parts bigint; q bigint; t bigint; big numeric; now_ms bigint; n int; k int := 0;
  legs int := cardinality(p_pks); ok boolean := true; debt boolean := false;
  ats bigint[]; rems bigint[]; useds bigint[]; ends int[];
BEGIN
  PERFORM set_config('lock_timeout', p_lock_ms::text, true);
  IF NOT p_waits THEN PERFORM set_config('synchronous_commit', 'off', true); END IF;
  SELECT x.version INTO o_version FROM ${schema}.items x
    WHERE x.pk = p_config_pk AND x.sk = p_config_sk;
  IF o_version > p_known THEN o_state := 2; RETURN; END IF;
  FOR l IN 1 .. legs LOOP
    SELECT x.build, x.parent, x.cascades, x.valid_until, x.cap, x.refill, x.period, x.at, x.tok,
      x.rem, x.used, x.held INTO bld, par, casc, until, cap, refill, period, at, tok, rem, used, hld
      FROM ${schema}.items x WHERE x.pk = p_pks[l] AND x.sk = p_sks[l] FOR NO KEY UPDATE;
    now_ms := ${CLOCK}; o_now := now_ms;
    IF bld IS DISTINCT FROM p_builds[l] OR par IS DISTINCT FROM p_parents[l] OR casc <> p_cascades[l] OR now_ms >= until THEN
      RETURN;
    END IF;
    n := cardinality(cap);
    FOR i IN 1 .. n LOOP
      -- A clock that was set back is for a step to decide.
      IF p_now < at[i] THEN o_balances := NULL; RETURN; END IF;
      entry := p_entries[k + i];
      IF entry IS NOT NULL THEN
        t := tok[i];
        -- A bucket that was made again lacks the entry: a step gives the call another one.
        IF entry NOT LIKE '+%' AND strpos(coalesce(hld, ''), ';' || entry || ' ') = 0 THEN
          o_balances := NULL; RETURN;
        END IF;
        hld := ${schema}.slots_1(hld, ltrim(entry, '+'), i, p_taken[k + i]);
      ELSIF refill[i] = 0 THEN
        t := tok[i];
        -- A call after the end of a period, or the first of a session, opens one: in a step.
        IF p_taken[k + i] <> 0 AND now_ms >= rem[i] THEN o_balances := NULL; RETURN; END IF;
      ELSE
      ${SETTLE}
      END IF;
      tok[i] := t; q := p_taken[k + i];
      IF q > 0 AND q > t THEN debt := true; END IF;
      IF p_gates IS NOT NULL THEN q := p_gates[k + i]; END IF;
      IF q > 0 AND q > t THEN ok := false; END IF;
      IF p_counted IS NOT NULL THEN q := p_counted[k + i]; ELSE q := p_taken[k + i]; END IF;
      IF entry IS NOT NULL THEN used[i] := greatest(used[i], cap[i] - t + p_taken[k + i]);
      ELSIF q <> 0 THEN used[i] := used[i] + q; END IF;
      IF used[i] > ${PRODUCT_MAX} THEN RETURN; END IF;
    END LOOP;
    IF legs = 1 THEN
      o_balances := tok; ats := at; rems := rem; useds := used; ends := ARRAY[n];
    ELSE
      o_balances := o_balances || tok; ats := ats || at; rems := rems || rem;
      useds := useds || used; ends := ends || (k + n); helds := helds || hld;
    END IF;
    IF o_ends IS NOT NULL OR 0 = ANY(refill) THEN
      o_ends := array_cat(coalesce(o_ends, array_fill(0::bigint, ARRAY[k])), rem);
      o_granted := array_cat(coalesce(o_granted, array_fill(0::bigint, ARRAY[k])), cap);
    END IF;
    k := k + n;
  END LOOP;
  IF NOT ok THEN o_state := 0; RETURN; END IF;
  -- A soft limit that goes into debt is counted as overdrawn, by a step.
  IF debt THEN o_balances := NULL; RETURN; END IF;
  IF p_token IS NOT NULL THEN
    ${spendToken(schema, "o_balances := NULL; RETURN;")}
  END IF;
  FOR i IN 1 .. k LOOP o_balances[i] := o_balances[i] - p_taken[i]; END LOOP;
  k := 0;
  FOR l IN 1 .. legs LOOP
    IF legs > 1 THEN
      at := ats[k + 1 : ends[l]]; tok := o_balances[k + 1 : ends[l]];
      rem := rems[k + 1 : ends[l]]; used := useds[k + 1 : ends[l]]; k := ends[l]; hld := helds[l];
    ELSE tok := o_balances; END IF;
    UPDATE ${schema}.items x SET at = v.at, tok = v.tok, rem = v.rem, used = v.used, held = hld,
      events = x.events + p_events[l] FROM (SELECT at, tok, rem, used) v
      WHERE x.pk = p_pks[l] AND x.sk = p_sks[l];
  END LOOP;
  o_state := 1;
END $zael$;`;
}

/** Returns a function: whether the adjustment is done, now or before; false: not warm. */
export function adjustFunction(schema: string): string {
  return `CREATE FUNCTION ${schema}.adjust_1(p_pk text, p_sk text, p_build text, p_taken bigint[],
  p_counted bigint[], p_events int, p_token text, p_now bigint, p_waits boolean, p_lock_ms int,
  p_ends bigint[], p_entries text[])
RETURNS boolean LANGUAGE plpgsql AS $zael$
DECLARE
  bld text; until bigint; cap bigint[]; refill bigint[]; period bigint[];
  at bigint[]; tok bigint[]; rem bigint[]; used bigint[]; hld text; others text;
  e bigint; parts bigint; q bigint; t bigint; big numeric; now_ms bigint;
BEGIN
  PERFORM set_config('lock_timeout', p_lock_ms::text, true);
  IF NOT p_waits THEN PERFORM set_config('synchronous_commit', 'off', true); END IF;
  SELECT x.build, x.valid_until, x.cap, x.refill, x.period, x.at, x.tok, x.rem, x.used, x.held
    INTO bld, until, cap, refill, period, at, tok, rem, used, hld FROM ${schema}.items x
    WHERE x.pk = p_pk AND x.sk = p_sk FOR NO KEY UPDATE;
  now_ms := ${CLOCK};
  PERFORM 1 FROM ${schema}.tokens y WHERE y.token = p_token AND y.at > now_ms - ${TOKEN_MS};
  IF FOUND THEN RETURN true; END IF;
  IF bld IS DISTINCT FROM p_build OR now_ms >= until THEN RETURN false; END IF;
  FOR i IN 1 .. cardinality(cap) LOOP
    q := p_taken[i];
    IF p_entries[i] IS NOT NULL THEN
      others := ${schema}.slots_1(hld, p_entries[i], i, q);
      -- Slots of an entry that is gone are not given back.
      IF q < 0 AND others IS NOT NULL THEN hld := others; tok[i] := tok[i] - q; END IF;
      CONTINUE;
    END IF;
    IF q <> 0 THEN
      IF refill[i] = 0 AND (now_ms >= rem[i] OR p_ends[i] IS DISTINCT FROM rem[i]) THEN
        -- It was consumed in another period: a step decides what of it counts.
        RETURN false;
      END IF;
      IF q < 0 THEN tok[i] := tok[i] - q;
      ELSIF refill[i] = 0 THEN
      IF tok[i] < q THEN RETURN false; END IF;
      tok[i] := tok[i] - q;
      ELSE
      IF p_now < at[i] THEN RETURN false; END IF;
      ${SETTLE}
      -- A debt may have to be kept for longer: a step decides.
      IF t < p_taken[i] THEN RETURN false; END IF;
      tok[i] := greatest(t - p_taken[i], -${DEBT_MAX});
      END IF;
    END IF;
    used[i] := used[i] + p_counted[i];
    IF abs(used[i]) > ${PRODUCT_MAX} THEN RETURN false; END IF;
  END LOOP;
  ${spendToken(schema, "RETURN true;")}
  UPDATE ${schema}.items x SET at = v.at, tok = v.tok, rem = v.rem, used = v.used,
    held = nullif(hld, ''), events = x.events + p_events FROM (SELECT at, tok, rem, used) v
    WHERE x.pk = p_pk AND x.sk = p_sk;
  RETURN true;
END $zael$;`;
}
