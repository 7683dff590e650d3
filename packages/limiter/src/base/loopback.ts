/** Which endpoints are on this machine. */

/** 127.0.0.0/8 and the same addresses as IPv6 writes them, in the form of a parsed URL. */
const LOOPBACK_V4 = /^127\.\d+\.\d+\.\d+$/;
const LOOPBACK_MAPPED = /^\[::ffff:7f[0-9a-f]{2}:[0-9a-f]{1,4}\]$/;

/** Addresses that a server listens on to be reached by every name of its machine. */
const ANY_ADDRESS: ReadonlySet<string> = new Set(["0.0.0.0", "[::]"]);

/**
 * Returns whether an endpoint is meant to be a local DynamoDB, which gets made-up credentials.
 * Besides loopback addresses these are 0.0.0.0 and ::, which programs print as where they listen;
 * AWS is at neither of them.
 */
export function isLocalEndpoint(endpoint: string | undefined): boolean {
  if (isLoopback(endpoint)) return true;
  return (
    endpoint !== undefined && URL.canParse(endpoint) && ANY_ADDRESS.has(new URL(endpoint).hostname)
  );
}

/**
 * Returns whether an address can be reached from this machine alone. 0.0.0.0 is not one: a server
 * that listens on it is reached from everywhere.
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
