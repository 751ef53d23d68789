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
    follow,
    layer_moves,
    loss_of,
    tree_components,
    tree_moves,
)
from likewise.core.compiled import compiled

# Columns whose best moves are put together, for each λ; pairs of them that are tried, and moves that are made at once.
PAIRED, TOGETHER, CHAIN = 8, 3, 8
# Of a wide table the most promising columns are looked at again, so many for each λ.
LISTED = 12
# What is reached before anything is known.
NOTHING = -1e300
# Rows that are tried from one row, at most, and rows that are remembered of a person.
WIDTH, ROOM = 64, 160


@compiled
def score(loss, cost, price, sign):  # type: ignore[no-untyped-def]
    """What a row is worth: loss − λ d²; at λ = ∞ the loss (or, to find other decisions, minus it) at no distance."""
    if price == np.inf:
        return sign * loss if cost == 0.0 else -np.inf
    return loss - price * cost


@compiled
def beats(loss, cost, goal, reached, best, number):  # type: ignore[no-untyped-def]
    """Whether a row is among the best for some λ, whose values and numbers are kept; note that."""
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
def _cost(metric, sums, at):  # type: ignore[no-untyped-def]
    """δᵀΣδ from a row of sums, the squared length and Qᵀδ (…, 1 + k), exactly 0 if it is rounding."""
    scale, least, basis = metric
    found, last = scale * sums[at, 0], len(basis) - 1
    for k in range(1, sums.shape[1]):
        found += basis[last, k - 1] * sums[at, k] * sums[at, k]
    return 0.0 if found <= least * sums[at, 0] else found


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
def _look(model, metric, loss, own, row, label, target, ways, by_column, worth):  # type: ignore[no-untyped-def]
    """Fill loss and squared fair distance of a row of values and places."""
    is_tree, trees, layers, cuts, columns, n_parts = model
    parts = np.empty((1, n_parts))
    if is_tree:
        cell, held, way = ways
        _cells(cuts, columns, row[0], cell)
        follow(trees, cell, held, way)
        tree_components(trees, way, label, parts[0])
    else:
        layer_moves(layers, columns, row[1], label, np.empty(0, np.int64), row, parts)
    _measure(metric, columns, own, row[1], by_column)
    worth[0] = loss_of(loss, parts, 0, label, target)
    worth[1] = _cost(metric, by_column, len(own))


@compiled
def _weigh(  # type: ignore[no-untyped-def]
    model, metric, loss, option, column, cells, own, row, label, target, listed, ways, by_column, seen, parts
):
    """Fill seen with loss and cost (∞ if it cannot be made), parts with components, of single moves of listed columns.

    The last of parts (M + 1, K) are the components of the row itself.
    """
    is_tree, trees, layers, cuts, columns, _ = model
    n = len(own)
    if is_tree:
        cell, held, way = ways
        _cells(cuts, columns, row[0], cell)
        follow(trees, cell, held, way)
        tree_moves(trees, columns, way, label, column, cells, parts)
    else:
        layer_moves(layers, columns, row[1], label, listed, option, parts)
    _measure(metric, columns, own, row[1], by_column)
    sums = np.empty((1, by_column.shape[1]))
    for i in range(len(listed)):
        p = listed[i]
        for o in range(columns[p, FIRST_OPTION], columns[p + 1, FIRST_OPTION]):
            seen[o, 1] = np.inf
            if option[o, USABLE] > 0.0:
                for k in range(sums.shape[1]):
                    sums[0, k] = by_column[n, k] + option[o, LENGTH + k] - by_column[p, k]
                seen[o, 1] = _cost(metric, sums, 0)
                seen[o, 0] = loss_of(loss, parts, o, label, target)


@compiled
def _best_moves(columns, option, place, listed, seen, price, sign, best, worth):  # type: ignore[no-untyped-def]
    """Fill the best option of every listed column at one λ, and what it is worth; −∞ if there is none."""
    for i in range(len(listed)):
        p = listed[i]
        worth[i], best[i] = -np.inf, 0
        for o in range(columns[p, FIRST_OPTION], columns[p + 1, FIRST_OPTION]):
            value = score(seen[o, 0], seen[o, 1], price, sign)
            if value > worth[i] and option[o, PLACE] != place[p]:
                worth[i], best[i] = value, o


@compiled
def _chain(metric, loss, option, column, top, goal, floor, label, target, by_column, parts, pairs, chain):  # type: ignore[no-untyped-def]
    """Fill the pairs of moves that promise most at one λ, and a chain of moves; return how long the chain is.

    What moves do is added up. The chain is the best pair, and then one move more at a time.
    """
    price, sign, tol = goal[0], goal[1], goal[2]
    n, here, (width, n_parts) = len(by_column) - 1, len(parts) - 1, (by_column.shape[1], parts.shape[1])
    # Squared length, Qᵀ and components of the chain so far, in a pair with its first move, and with a move more.
    sums, more = np.empty((3, width)), np.empty((3, n_parts))
    for k in range(width):
        sums[0, k] = by_column[n, k]
    for k in range(n_parts):
        more[0, k] = parts[here, k]
    most, count = np.full(len(pairs), floor + tol * (1.0 + abs(floor))), 0
    pairs[:] = -1
    while count < len(chain):
        at = -1
        for i in range(len(top) if count == 0 else 1):
            if count == 0 and top[i] < 0:
                break
            for k in range(width):
                sums[1, k] = sums[0, k]
                if count == 0:
                    sums[1, k] += option[top[i], LENGTH + k] - by_column[column[top[i]], k]
            for k in range(n_parts):
                more[1, k] = more[0, k]
                if count == 0:
                    more[1, k] += parts[top[i], k] - parts[here, k]
            for j in range(i + 1 if count == 0 else 0, len(top)):
                a, b = top[i], top[j]
                free = b >= 0
                for c in range(count):
                    free = free and column[chain[c]] != column[b]
                if not free:
                    continue
                for k in range(width):
                    sums[2, k] = sums[1, k] + option[b, LENGTH + k] - by_column[column[b], k]
                for k in range(n_parts):
                    more[2, k] = more[1, k] + parts[b, k] - parts[here, k]
                worth = loss_of(loss, more, 2, label, target)
                worth = score(worth, _cost(metric, sums, 2), price, sign)
                if count > 0:
                    if worth > most[0]:
                        most[0], at = worth, b
                    continue
                # Into its place among the best.
                for s in range(len(pairs)):
                    if worth > most[s]:
                        worth, most[s] = most[s], worth
                        a, pairs[s, 0] = pairs[s, 0], a
                        b, pairs[s, 1] = pairs[s, 1], b
        begin = count
        if count == 0:
            chain[0], at, count = pairs[0, 0], pairs[0, 1], 1
        if at < 0:
            return begin
        chain[count] = at
        count += 1
        for c in range(begin, count):
            o = chain[c]
            for k in range(width):
                sums[0, k] += option[o, LENGTH + k] - by_column[column[o], k]
            for k in range(n_parts):
                more[0, k] += parts[o, k] - parts[here, k]
        most[0] += tol * (1.0 + abs(most[0]))
    return count


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
def _try(row, option, column, seen, moves, made, tried, worth, count):  # type: ignore[no-untyped-def]
    """Add a row with some moves to those to try, if it is new; what a single move does is known."""
    key = 0
    for o in moves:
        key += (o + 1) * (2654435761 + o)
    for i in range(count):
        if made[i] == key:
            return count
    if count == len(made):
        return count
    made[count] = key
    for side in range(2):
        for p in range(row.shape[1]):
            tried[count, side, p] = row[side, p]
        for o in moves:
            tried[count, side, column[o]] = option[o, VALUE + side]
        worth[count, side] = np.nan if len(moves) > 1 else seen[moves[0], side]
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
    made[count], worth[count, 0] = -1, np.nan
    return count + 1


@compiled
def _propose(  # type: ignore[no-untyped-def]
    columns, numbers, metric, loss, option, column, row, listed, goal, reached, label, target, by_column, seen, parts,
    promising, tried, worth
):  # fmt: skip
    """Fill the rows to try, for each λ the best move and chains of the best; return how many."""
    best, value = np.empty(len(listed), np.int64), np.empty(len(listed))
    top, chain, made = np.empty(PAIRED, np.int64), np.empty(CHAIN, np.int64), np.empty(WIDTH, np.int64)
    pairs = np.empty((TOGETHER, 2), np.int64)
    count = 0
    for k in range(len(goal)):
        _best_moves(columns, option, row[1], listed, seen, goal[k, 0], goal[k, 1], best, value)
        floor = reached[k, 0]
        top[:] = -1
        for s in range(min(LISTED, len(listed))):
            at = np.argmax(value)
            if value[at] == -np.inf:
                break
            if s == 0 and value[at] > floor + goal[k, 2] * (1.0 + abs(floor)):
                floor = value[at]
                before = count
                count = _try(row, option, column, seen, best[at : at + 1], made, tried, worth, count)
                p = listed[at]
                if count > before and columns[p, SMOOTH] > 0 and goal[k, 0] != np.inf:
                    count = _try_peak(
                        columns, numbers, option, p, best[at], seen, goal[k, 0], made, tried, worth, count
                    )
            if s < PAIRED:
                top[s] = best[at]
            promising[listed[at]] = True
            value[at] = -np.inf
        length = _chain(
            metric, loss, option, column, top, goal[k], floor, label, target, by_column, parts, pairs, chain
        )  # fmt: skip
        if length > 2:
            count = _try(row, option, column, seen, chain[:length], made, tried, worth, count)
        for s in range(TOGETHER):
            if pairs[s, 0] >= 0:
                count = _try(row, option, column, seen, pairs[s], made, tried, worth, count)
    return count


@compiled
def _search_person(  # type: ignore[no-untyped-def]
    model, numbers, metric, loss, option, column, cells, label, target, goal, rounds, ways, rows, found
):  # fmt: skip
    """Search around a person; fill their rows (C, 2, P), with loss and cost (C, 2), and return how many there are."""
    columns, n_columns = model[4], rows.shape[2]
    own = np.empty(n_columns)
    by_column = np.empty((n_columns + 1, option.shape[1] - SHIFT + 1))
    seen, parts = np.empty((len(option), 2)), np.empty((len(option) + 1, model[5]))
    best, reached = np.full((len(goal), 1), -1), np.full((len(goal), 1), NOTHING)
    expanded, promising = np.zeros(len(rows), np.bool_), np.zeros(n_columns, np.bool_)
    listed = np.arange(n_columns)
    tried, worth = np.empty((WIDTH, 2, n_columns)), np.full((WIDTH, 2), np.nan)
    count, size = 1, 0
    for p in range(n_columns):
        o = columns[p, FIRST_OPTION]
        own[p], tried[0, 0, p], tried[0, 1, p] = option[o, PLACE], option[o, VALUE], option[o, PLACE]
    for step in range(rounds + 1):
        for m in range(count):
            if np.isnan(worth[m, 0]):
                _look(model, metric, loss, own, tried[m], label, target, ways, by_column, worth[m])
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
            model,
            metric,
            loss,
            option,
            column,
            cells,
            own,
            row,
            label,
            target,
            listed,
            ways,
            by_column,
            seen,
            parts,
        )
        count = _propose(
            columns, numbers, metric, loss, option, column, row, listed, goal, reached, label, target, by_column,
            seen, parts, promising, tried, worth
        )  # fmt: skip
        if step == 0 and n_columns > LISTED * len(goal):
            listed = np.flatnonzero(promising)
    return size


@compiled
def search_people(  # type: ignore[no-untyped-def]
    model, numbers, metric, loss, option, column, cells, label, target, goal, rounds, rows, found, count
):  # fmt: skip
    """Search around people, one after the other: fill count (n,) besides what is filled for each."""
    n_columns = rows.shape[3]
    way = np.full(len(model[1][1]), -1, np.int32)
    ways = (np.zeros(n_columns, np.int32), np.full(n_columns, -1, np.int32), way)
    for i in range(len(rows)):
        count[i] = _search_person(
            model, numbers, metric, loss, option[i], column, cells[i], label[i], target[i], goal, rounds, ways,
            rows[i], found[i]
        )  # fmt: skip
