"""``python -m training.doctor``: prints the facts as JSON; exit status 1 if it finds a problem."""

import json
import sys

from training.doctor import environment_facts, find_problems


def main() -> int:
    facts = environment_facts()
    problems = list(find_problems(facts))
    json.dump({**facts, "problems": problems}, sys.stdout, indent=2)
    sys.stdout.write("\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
