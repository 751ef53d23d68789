"""Counterparts of people: only the attribute changed, its consequences as well, or comparable real people.

Examples
--------
>>> import pandas as pd
>>> from likewise.counterfactuals import AttributeTwins, Implication
>>> people = pd.DataFrame({"sex": ["F", "M"], "role": ["Wife", "Husband"]})
>>> women, men = AttributeTwins({"sex": ["F", "M"]}).fit(people).make(people).tables
>>> Implication({"role": "Husband"}, {"sex": "M"}).broken(women).tolist()
[False, True]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from likewise.core.lazy import lazy_names

if TYPE_CHECKING:
    from likewise.counterfactuals.causal.conditionals import Boosting as Boosting
    from likewise.counterfactuals.causal.consequences import (
        Consequences as Consequences,
        ConsequenceTwins as ConsequenceTwins,
        TwinSubspace as TwinSubspace,
    )
    from likewise.counterfactuals.causal.graphs import (
        ColumnGraph as ColumnGraph,
        parse_dot as parse_dot,
        read_graph as read_graph,
    )
    from likewise.counterfactuals.changes import GroupAnswer as GroupAnswer, TwinAnswer as TwinAnswer
    from likewise.counterfactuals.correspondence import (
        CorrespondenceStudy as CorrespondenceStudy,
        correspondence_study as correspondence_study,
        gender_race_consistency as gender_race_consistency,
        spouse_consistency as spouse_consistency,
    )
    from likewise.counterfactuals.edited_rows import (
        AttributeTwins as AttributeTwins,
        MadeTwins as MadeTwins,
        TwinMaker as TwinMaker,
        orbit_representatives as orbit_representatives,
    )
    from likewise.counterfactuals.edits import Edit as Edit
    from likewise.counterfactuals.matched import MatchedTwins as MatchedTwins
    from likewise.counterfactuals.plausibility import (
        LearnedRules as LearnedRules,
        Plausibility as Plausibility,
        learn_plausibility as learn_plausibility,
        learn_rules as learn_rules,
    )
    from likewise.counterfactuals.rules import (
        Forbidden as Forbidden,
        Implication as Implication,
        Rules as Rules,
        ValueMap as ValueMap,
        read_rules as read_rules,
    )
    from likewise.counterfactuals.study import TwinStudy as TwinStudy, twin_study as twin_study

__getattr__, __dir__, __all__ = lazy_names(__name__)
