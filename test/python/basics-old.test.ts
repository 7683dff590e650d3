/** Common behaviour of both libraries, with release 0.10.3 of the Python library. */

import { describeBasics } from "./basics.ts";

describeBasics("0.10.3");
