/** The pool of connections of undici alone: the whole package is more than twice as large. */

import Pool from "undici/lib/dispatcher/pool.js";

export { Pool };
