/** Data of a view: loaded when its key changes, and again when it is asked for. */

import { useCallback, useEffect, useRef, useState } from "preact/hooks";

export interface Loaded<T> {
  readonly data: T | undefined;
  readonly error: string | undefined;
  /** When the data came, in milliseconds since the page was loaded. */
  readonly atMs: number;
  readonly reload: () => void;
}

/** Loads data, and again every `everyMs` milliseconds while the page is visible. */
export function useLoaded<T>(
  key: string,
  load: (signal: AbortSignal) => Promise<T>,
  everyMs?: number,
): Loaded<T> {
  const [state, setState] = useState<{ key: string; data?: T; error?: string; atMs: number }>({
    key,
    atMs: 0,
  });
  const [turn, setTurn] = useState(0);
  const loading = useRef(load);
  loading.current = load;
  // The key identifies the data that is loaded.
  useEffect(() => {
    const controller = new AbortController();
    loading.current(controller.signal).then(
      (data) => setState({ key, data, atMs: performance.now() }),
      (error: Error) => {
        if (!controller.signal.aborted) setState({ key, error: error.message, atMs: 0 });
      },
    );
    return () => controller.abort();
  }, [key, turn]);
  useEffect(() => {
    if (everyMs === undefined) return undefined;
    const interval = setInterval(() => {
      if (!document.hidden) setTurn((last) => last + 1);
    }, everyMs);
    return () => clearInterval(interval);
  }, [everyMs]);
  const reload = useCallback(() => setTurn((last) => last + 1), []);
  const isCurrent = state.key === key;
  return {
    data: isCurrent ? state.data : undefined,
    error: isCurrent ? state.error : undefined,
    atMs: state.atMs,
    reload,
  };
}
