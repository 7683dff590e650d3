/** Common behaviour of both libraries, with release 0.17.0 of the Python library. */

import { describeBasics } from "./basics.ts";

describeBasics("0.17.0");
