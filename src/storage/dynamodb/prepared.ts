/** A request that can be had in either form, whichever the transport needs. */

import type { Input, OperationName } from "./operations.ts";

export abstract class Prepared<Name extends OperationName> {
  /** As the SDK takes it. */
  abstract input(): Input<Name>;
  /** As it goes over the wire. */
  abstract text(): string;
}
