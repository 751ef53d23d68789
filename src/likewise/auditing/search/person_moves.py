"""The search around one person whose model was read, compiled: microseconds for each row that is moved on from."""

from __future__ import annotations

import numpy as np

from likewise.auditing.bounds.moves import (
    COUNT,
    FIRST_CUT,
    FIRST_OPTION,
    HOT,
    LENGTH,
    PLACE,
    SHIFT,
    SMOOTH,
    START,
    USABLE,
    VALUE,
    layer_moves,
    loss_of,
    tree_components,
    tree_moves,
)
from likewise.core.compiled import compiled

# Columns whose best moves are tried two by two, for each λ.
PAIRED = 8
# Pairs that are tried for each λ.
TOGETHER = 3
# Of a wide table the most promising columns are looked at again, so many for each λ.
LISTED = 12
# What is reached before anything is known.
NOTHING = -1e300
# Rows that are moved on from for each λ: the best, and then the second best.
BEAM = 2
# Rows that are tried from one row, at most, and rows that are remembered of a person.
WIDTH, ROOM = 32, 160


@compiled
def score(loss, cost, price, sign):  # type: ignore[no-untyped-def]
    """What a row is worth: loss − λ d²; at λ = ∞ the loss (or, to find other decisions, minus it) at no distance."""
    if price == np.inf:
        return sign * loss if cost == 0.0 else -np.inf
    return loss - price * cost


@compiled
def beats(loss, cost, goal, reached, best, number):  # type: ignore[no-untyped-def]
    """Whether a row is among the best two for some λ, whose values and numbers are kept; note that."""
    found = False
    for k in range(len(goal)):
        worth, rank = score(loss, cost, goal[k, 0], goal[k, 1]), reached.shape[1]
        while rank > 0 and worth > reached[k, rank - 1] + goal[k, 2] * (1.0 + abs(reached[k, rank - 1])):
            rank -= 1
        if rank == reached.shape[1] or worth == reached[k, max(rank - 1, 0)]:
            continue
        for r in range(reached.shape[1] - 1, rank, -1):
            reached[k, r], best[k, r] = reached[k, r - 1], best[k, r - 1]
        reached[k, rank], best[k, rank] = worth, number
        found = True
    return found


@compiled
def next_row(best, expanded):  # type: ignore[no-untyped-def]
    """The first of the best rows that was not moved on from, or of the second best; −1 if all were."""
    for r in range(best.shape[1]):
        for k in range(len(best)):
            if best[k, r] >= 0 and not expanded[best[k, r]]:
                return best[k, r]
    return -1


@compiled
def _cost(metric, length, shift):  # type: ignore[no-untyped-def]
    """δᵀΣδ from the squared length and Qᵀδ (k,), exactly 0 if it is rounding."""
    scale, least, basis = metric
    found = scale * length
    for k in range(len(shift)):
        found += basis[len(basis) - 1, k] * shift[k] * shift[k]
    return 0.0 if found <= least * length else found


@compiled
def _measure(metric, columns, own, place, by_column):  # type: ignore[no-untyped-def]
    """Fill the squared length and Qᵀ (1 + k numbers) of a row's moves by column, (P + 1, …); the last are the sums."""
    basis = metric[2]
    for p in range(len(own)):
        start = columns[p, START]
        if columns[p, HOT] != 0:
            before, after = start + int(own[p]), start + int(place[p])
            by_column[p, 0] = 0.0 if before == after else 2.0
            for k in range(basis.shape[1]):
                by_column[p, 1 + k] = basis[after, k] - basis[before, k]
        else:
            step = place[p] - own[p]
            by_column[p, 0] = step * step
            for k in range(basis.shape[1]):
                by_column[p, 1 + k] = step * basis[start, k]
    for k in range(by_column.shape[1]):
        total = 0.0
        for p in range(len(own)):
            total += by_column[p, k]
        by_column[len(own), k] = total


@compiled
def _cells(cuts, columns, value, cell):  # type: ignore[no-untyped-def]
    """Fill between which cuts the values of a row lie, or which categories they are."""
    for p in range(len(value)):
        first = columns[p, FIRST_CUT]
        low, high = first, columns[p + 1, FIRST_CUT]
        if columns[p, COUNT] > 0:
            low, high = first + int(value[p]), 0
        while low < high:
            middle = (low + high) // 2
            if cuts[middle] < value[p]:
                low = middle + 1
            else:
                high = middle
        cell[p] = low - first


@compiled
def _look(model, metric, loss, own, row, label, target, n_parts, cell, by_column, worth):  # type: ignore[no-untyped-def]
    """Fill loss and squared fair distance of a row of values and places."""
    is_tree, trees, layers, cuts, columns = model
    found = np.empty((1, n_parts))
    if is_tree:
        _cells(cuts, columns, row[0], cell)
        tree_components(trees, cell, label, found[0])
    else:
        layer_moves(layers, columns, row[1], label, np.empty(0, np.int64), row, found)
    _measure(metric, columns, own, row[1], by_column)
    worth[0] = loss_of(loss, found[0], label, target)
    worth[1] = _cost(metric, by_column[len(own), 0], by_column[len(own), 1:])


@compiled
def _weigh(  # type: ignore[no-untyped-def]
    model, metric, loss, option, column, cells, own, row, label, target, listed, cell, by_column, seen
):
    """Fill seen (M + 1, 2 + K) with loss, cost and components of every single move of listed columns from a row."""
    is_tree, trees, layers, cuts, columns = model
    components, n = np.empty((len(seen), seen.shape[1] - 2)), len(own)
    if is_tree:
        _cells(cuts, columns, row[0], cell)
        tree_moves(trees, columns, cell, label, column, cells, components)
    else:
        layer_moves(layers, columns, row[1], label, listed, option, components)
    _measure(metric, columns, own, row[1], by_column)
    shift = np.empty(by_column.shape[1] - 1)
    for i in range(len(listed)):
        p = listed[i]
        for o in range(columns[p, FIRST_OPTION], columns[p + 1, FIRST_OPTION]):
            for k in range(len(shift)):
                shift[k] = by_column[n, 1 + k] + option[o, SHIFT + k] - by_column[p, 1 + k]
            seen[o, 1] = _cost(metric, by_column[n, 0] + option[o, LENGTH] - by_column[p, 0], shift)
            seen[o, 0] = loss_of(loss, components[o], label, target)
            for k in range(components.shape[1]):
                seen[o, 2 + k] = components[o, k]
    for k in range(components.shape[1]):
        seen[len(column), 2 + k] = components[len(column), k]


@compiled
def _best_moves(columns, option, place, listed, seen, price, sign, best, worth):  # type: ignore[no-untyped-def]
    """Fill the best option of every listed column at one λ, and what it is worth; −∞ if there is none."""
    for i in range(len(listed)):
        p = listed[i]
        worth[i], best[i] = -np.inf, 0
        for o in range(columns[p, FIRST_OPTION], columns[p + 1, FIRST_OPTION]):
            if option[o, USABLE] > 0.0 and option[o, PLACE] != place[p]:
                value = score(seen[o, 0], seen[o, 1], price, sign)
                if value > worth[i]:
                    worth[i], best[i] = value, o


@compiled
def _best_pairs(metric, loss, option, column, top, goal, floor, label, target, by_column, seen, pairs):  # type: ignore[no-untyped-def]
    """Fill the pairs of moves that promise most at one λ, if what moves do adds up; −1 for none."""
    price, sign, tol = goal[0], goal[1], goal[2]
    n, here = len(by_column) - 1, len(seen) - 1
    shift, both = np.empty(by_column.shape[1] - 1), np.empty(seen.shape[1] - 2)
    worst = np.full(len(pairs), floor)
    pairs[:] = -1
    for j in range(1, len(top)):
        for i in range(j):
            a, b = top[i], top[j]
            if a < 0 or b < 0:
                continue
            p, q = column[a], column[b]
            for k in range(len(shift)):
                rest = by_column[n, 1 + k] - by_column[p, 1 + k] - by_column[q, 1 + k]
                shift[k] = rest + option[a, SHIFT + k] + option[b, SHIFT + k]
            rest = by_column[n, 0] - by_column[p, 0] - by_column[q, 0]
            away = _cost(metric, rest + option[a, LENGTH] + option[b, LENGTH], shift)
            for k in range(len(both)):
                both[k] = seen[a, 2 + k] + seen[b, 2 + k] - seen[here, 2 + k]
            worth = score(loss_of(loss, both, label, target), away, price, sign)
            if not worth > floor + tol * (1.0 + abs(floor)):
                continue
            # Into its place among the best.
            for s in range(len(pairs)):
                if worth > worst[s]:
                    worth, worst[s] = worst[s], worth
                    a, pairs[s, 0] = pairs[s, 0], a
                    b, pairs[s, 1] = pairs[s, 1], b


@compiled
def _peak(columns, option, p, chosen, seen, price):  # type: ignore[no-untyped-def]
    """Where a parabola through a number's best option and its neighbours is highest; NaN where it says nothing new."""
    middle, below, above = option[chosen, PLACE], -np.inf, np.inf
    low, high = -1, -1
    for o in range(columns[p, FIRST_OPTION], columns[p + 1, FIRST_OPTION]):
        place = option[o, PLACE]
        if option[o, USABLE] > 0.0 and below < place < middle:
            below, low = place, o
        if option[o, USABLE] > 0.0 and middle < place < above:
            above, high = place, o
    if low < 0 or high < 0:
        return np.nan
    at = seen[chosen, 0] - price * seen[chosen, 1]
    left = (at - (seen[low, 0] - price * seen[low, 1])) / (middle - below)
    right = ((seen[high, 0] - price * seen[high, 1]) - at) / (above - middle)
    if not left - right > 0.0:
        return np.nan
    # The slope falls from `left`, half way below, to `right`, half way above.
    found = (middle + below) / 2.0 + (above - below) / 2.0 * left / (left - right)
    return found if below < found < above else np.nan


@compiled
def _try(row, option, column, seen, a, b, made, tried, worth, count):  # type: ignore[no-untyped-def]
    """Add a row with one or two moves to those to try, if it is new; what a single move does is known."""
    for i in range(count):
        if made[i, 0] == a and made[i, 1] == b:
            return count
    if count == len(made):
        return count
    made[count, 0], made[count, 1] = a, b
    for side in range(2):
        for p in range(row.shape[1]):
            tried[count, side, p] = row[side, p]
        tried[count, side, column[a]] = option[a, VALUE + side]
        if b >= 0:
            tried[count, side, column[b]] = option[b, VALUE + side]
        worth[count, side] = np.nan if b >= 0 else seen[a, side]
    return count + 1


@compiled
def _try_peak(columns, numbers, option, p, a, seen, price, made, tried, worth, count):  # type: ignore[no-untyped-def]
    """Add what lies between the options of a number, along which a network is smooth, to the rows to try."""
    peak = _peak(columns, option, p, a, seen, price)
    if np.isnan(peak) or count == len(made):
        return count
    value = peak * numbers[p, 1] + numbers[p, 0]
    value = min(max(np.rint(value) if columns[p, SMOOTH] > 1 else value, numbers[p, 2]), numbers[p, 3])
    for side in range(2):
        for q in range(tried.shape[2]):
            tried[count, side, q] = tried[count - 1, side, q]
    tried[count, 0, p], tried[count, 1, p] = value, (value - numbers[p, 0]) / numbers[p, 1]
    made[count, 0], made[count, 1], worth[count, 0] = -1, -1, np.nan
    return count + 1


@compiled
def _propose(  # type: ignore[no-untyped-def]
    columns, numbers, metric, loss, option, column, row, listed, goal, reached, label, target, by_column, seen,
    promising, tried, worth
):  # fmt: skip
    """Fill the rows to try, for each λ the best move and pairs of the best; return how many."""
    best, value = np.empty(len(listed), np.int64), np.empty(len(listed))
    top, pairs, made = (
        np.empty(PAIRED, np.int64),
        np.empty((TOGETHER, 2), np.int64),
        np.empty((WIDTH, 2), np.int64),
    )
    count = 0
    for k in range(len(goal)):
        _best_moves(columns, option, row[1], listed, seen, goal[k, 0], goal[k, 1], best, value)
        floor = reached[k, BEAM - 1]
        top[:] = -1
        for s in range(min(LISTED, len(listed))):
            at = np.argmax(value)
            if value[at] == -np.inf:
                break
            if s == 0 and value[at] > floor + goal[k, 2] * (1.0 + abs(floor)):
                floor = value[at]
                before = count
                count = _try(row, option, column, seen, best[at], -1, made, tried, worth, count)
                p = listed[at]
                if count > before and columns[p, SMOOTH] > 0 and goal[k, 0] != np.inf:
                    count = _try_peak(
                        columns, numbers, option, p, best[at], seen, goal[k, 0], made, tried, worth, count
                    )
            if s < PAIRED:
                top[s] = best[at]
            promising[listed[at]] = True
            value[at] = -np.inf
        _best_pairs(metric, loss, option, column, top, goal[k], floor, label, target, by_column, seen, pairs)
        for s in range(TOGETHER):
            if pairs[s, 0] >= 0:
                count = _try(row, option, column, seen, pairs[s, 0], pairs[s, 1], made, tried, worth, count)
    return count


@compiled
def search_person(  # type: ignore[no-untyped-def]
    model,
    numbers,
    metric,
    loss,
    option,
    column,
    cells,
    label,
    target,
    goal,
    rounds,
    n_parts,
    rows,
    found,
):
    """Search around a person; fill their rows (C, 2, P), with loss and cost (C, 2), and return how many there are."""
    columns, n_columns = model[4], rows.shape[2]
    own, cell = np.empty(n_columns), np.zeros(n_columns, np.int32)
    by_column = np.empty((n_columns + 1, option.shape[1] - SHIFT + 1))
    seen = np.empty((len(option) + 1, 2 + n_parts))
    best, reached = np.full((len(goal), BEAM), -1), np.full((len(goal), BEAM), NOTHING)
    expanded, listed, promising = (
        np.zeros(len(rows), np.bool_),
        np.arange(n_columns),
        np.zeros(n_columns, np.bool_),
    )
    tried, worth = np.empty((WIDTH, 2, n_columns)), np.full((WIDTH, 2), np.nan)
    count, size = 1, 0
    for p in range(n_columns):
        o = columns[p, FIRST_OPTION]
        own[p], tried[0, 0, p], tried[0, 1, p] = option[o, PLACE], option[o, VALUE], option[o, PLACE]
    for step in range(rounds + 1):
        for m in range(count):
            if np.isnan(worth[m, 0]):
                _look(model, metric, loss, own, tried[m], label, target, n_parts, cell, by_column, worth[m])
            if beats(worth[m, 0], worth[m, 1], goal, reached, best, size):
                found[size, 0], found[size, 1] = worth[m, 0], worth[m, 1]
                for p in range(n_columns):
                    rows[size, 0, p], rows[size, 1, p] = tried[m, 0, p], tried[m, 1, p]
                size += 1
        base = next_row(best, expanded)
        if base < 0 or step == rounds or size + WIDTH >= len(rows):
            break
        expanded[base] = True
        row = rows[base]
        _weigh(
            model, metric, loss, option, column, cells, own, row, label, target, listed, cell, by_column, seen
        )
        count = _propose(
            columns, numbers, metric, loss, option, column, row, listed, goal, reached, label, target, by_column,
            seen, promising, tried, worth
        )  # fmt: skip
        if step == 0 and n_columns > LISTED * len(goal):
            listed = np.flatnonzero(promising)
    return size
