/**
 * Takes what commands use of YAML, so that a command can import it late. The package is CommonJS:
 * imported late out of a bundle, it has no names of its own.
 */

export { parse, stringify } from "yaml";
