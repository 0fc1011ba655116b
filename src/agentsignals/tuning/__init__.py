"""Search over knobs: which treatments to run next, by what the store says of those that were run.

from agentsignals.tuning import Search, read_plan
search = Search(read_plan(Path("plan.toml")), Path("search"))
run = search.ask()      # a treatment and a task
search.tell(run)        # when it has run: reads its folder into the store, and its outcomes from there
"""

from agentsignals.tuning.plan import Budget, Plan, read_plan
from agentsignals.tuning.search import Search
from agentsignals.tuning.standing import Standing, standing

__all__ = ["Budget", "Plan", "Search", "Standing", "read_plan", "standing"]
