"""A module that ends the process which imports it, as scripts do."""

import sys

sys.exit("not to be imported")
