"""`python -m isthmus run -n 2 ...` is `isthmus run -n 2 ...`."""
from ._command import main

main()
