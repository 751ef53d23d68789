"""Twins of people: only the attribute changed, its consequences as well, or comparable real people.

Examples
--------
>>> import pandas as pd
>>> from likewise.twins import AttributeTwins, Implication
>>> people = pd.DataFrame({"sex": ["F", "M"], "role": ["Wife", "Husband"]})
>>> women, men = AttributeTwins({"sex": ["F", "M"]}).fit(people).make(people).tables
>>> Implication({"role": "Husband"}, {"sex": "M"}).broken(women).tolist()
[False, True]
"""

from __future__ import annotations

from likewise.evaluation.twin_makers import MadeTwins, TwinMaker
from likewise.twins.answers import GroupAnswer, TwinAnswer
from likewise.twins.attribute_twins import AttributeTwins
from likewise.twins.boosted_conditionals import Boosting
from likewise.twins.consequence_twins import Consequences, ConsequenceTwins
from likewise.twins.dot_text import parse_dot
from likewise.twins.graphs import ColumnGraph, read_graph
from likewise.twins.learned_rules import LearnedRules, learn_rules
from likewise.twins.matched_twins import MatchedTwins
from likewise.twins.orbits import circle_rows, circle_tables
from likewise.twins.plausibility import Plausibility, learn_plausibility
from likewise.twins.rules import Forbidden, Implication, Rules, ValueMap, read_rules
from likewise.twins.twin_study import TwinStudy, twin_study
from likewise.twins.twin_subspace import TwinSubspace

__all__ = [
    "AttributeTwins",
    "Boosting",
    "ColumnGraph",
    "ConsequenceTwins",
    "Consequences",
    "Forbidden",
    "GroupAnswer",
    "Implication",
    "LearnedRules",
    "MadeTwins",
    "MatchedTwins",
    "Plausibility",
    "Rules",
    "TwinAnswer",
    "TwinMaker",
    "TwinStudy",
    "TwinSubspace",
    "ValueMap",
    "circle_rows",
    "circle_tables",
    "learn_plausibility",
    "learn_rules",
    "parse_dot",
    "read_graph",
    "read_rules",
    "twin_study",
]
