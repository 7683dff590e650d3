/** Which endpoints are on this machine. */

/** 127.0.0.0/8 and the same addresses as IPv6 writes them, in the form of a parsed URL. */
const LOOPBACK_V4 = /^127\.\d+\.\d+\.\d+$/;
const LOOPBACK_MAPPED = /^\[::ffff:7f[0-9a-f]{2}:[0-9a-f]{1,4}\]$/;

/**
 * Returns whether an endpoint is a server on this machine. 0.0.0.0 is not: it means every address
 * of a machine, and some systems route it elsewhere.
 */
export function isLoopback(endpoint: string | undefined): boolean {
  if (endpoint === undefined || !URL.canParse(endpoint)) return false;
  const { hostname } = new URL(endpoint);
  return (
    hostname === "localhost" ||
    hostname === "[::1]" ||
    LOOPBACK_V4.test(hostname) ||
    LOOPBACK_MAPPED.test(hostname)
  );
}
