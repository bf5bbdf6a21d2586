import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from fixtures import comm, world  # noqa: E402, F401: pytest finds them here
