"""The search around one person whose model was read, compiled: microseconds for each row that is moved on from.

All that is compiled together stands here.

What every move of one column does is known in one pass. Trees: a column is set free below each split of the person's own
path, and what the leaves there add is booked for the values that lead to them; one pass costs a few predictions, whatever the
number of values. Networks: the sums of the first layer are kept, and a move changes them by one weight. Moves change
components: what the loss is made of, for the person's label (`bounds.family.Components`).
"""

from __future__ import annotations

import numpy as np

from likewise.core.compiled import compiled

# What is known of a column: its first encoded column, whether it is one-hot, how many categories it has (0 of a number),
# where its cuts and its cells begin, its first option, and whether places between options are tried (2: whole numbers).
START, HOT, COUNT, FIRST_CUT, FIRST_CELL, FIRST_OPTION, SMOOTH = range(7)
# What is known of an option: its value, its place in the encoding, whether it can be used, and what it adds to the
# squared length and (from the last on) to Qᵀδ.
VALUE, PLACE, USABLE, LENGTH, SHIFT = range(5)
# How components become a loss.
SCORES, PROBABILITIES, HINGE, DECISIONS, SQUARED = range(5)
# What is known of a node of a tree.
LEFT, RIGHT, COLUMN, CUT = range(4)

# Columns whose best moves are put together, for each λ; pairs of them that are tried, and moves that are made at once.
PAIRED, TOGETHER, CHAIN = 8, 3, 8
# Of a wide table the most promising columns are looked at again, so many for each λ.
LISTED = 12
# What is reached before anything is known.
NOTHING = -1e300
# Rows that are tried from one row, at most, and rows that are remembered of a person.
WIDTH, ROOM = 64, 160


@compiled
def loss_of(loss, components, at, label, target):  # type: ignore[no-untyped-def]
    """Loss of one row of components (M, K) under a label; views of arrays would cost more than the loss."""
    code, floor, ceiling, ties = loss
    if code == PROBABILITIES:
        return min(max(-np.log(max(-components[at, 0], floor)), 0.0), ceiling)
    if code == SQUARED:
        over = max(max(components[at, 0] - target, components[at, 1] + target), 0.0)
        return over * over
    top, count = components[at, 0], components.shape[1]
    for k in range(1, count):
        top = max(top, components[at, k])
    if code == SCORES:
        top = max(top, 0.0)
        rest = np.exp(-top)
        for k in range(count):
            rest += np.exp(components[at, k] - top)
        return min(max(top + np.log(rest), 0.0), ceiling)
    if code == HINGE:
        return max(1.0 + top, 0.0)
    for k in range(count):
        if components[at, k] > 0.0 or (ties[label, k] and components[at, k] == 0.0):
            return 1.0
    return 0.0


@compiled
def follow(trees, cell, held, way):  # type: ignore[no-untyped-def]
    """Fill way (N,) with the child that a row goes to, of the nodes whose column is not held at the row's cell yet."""
    _, nodes, masks, _, _, split, first = trees
    for p in range(len(cell)):
        at = cell[p]
        if held[p] == at:
            continue
        held[p] = at
        word, bit = at // 64, np.uint64(at % 64)
        for i in range(first[p], first[p + 1]):
            node = split[i]
            cut = nodes[node, CUT]
            if nodes[node, COLUMN] >= 0:
                way[node] = nodes[node, LEFT] if at <= cut else nodes[node, RIGHT]
            else:
                left = (masks[cut, word] >> bit) & np.uint64(1) != np.uint64(0)
                way[node] = nodes[node, LEFT] if left else nodes[node, RIGHT]


@compiled
def tree_components(trees, way, label, found):  # type: ignore[no-untyped-def]
    """Fill found (K,) with the components of a row, given by the ways it goes."""
    roots, nodes, _, values, _, _, _ = trees
    for k in range(len(found)):
        found[k] = values[label, len(nodes), k]
    for t in range(len(roots)):
        node = roots[t]
        while way[node] >= 0:
            node = way[node]
        for k in range(len(found)):
            found[k] += values[label, node, k]


@compiled
def _explore(trees, columns, way, label, leaf, node, column, begin, end, waiting, sets, total):  # type: ignore[no-untyped-def]
    """Book what a column adds if it takes the cells begin to end, or the categories of sets[0], below a node."""
    _, nodes, masks, values, _, _, _ = trees
    first, n_words = columns[column if column >= 0 else -1 - column, FIRST_CELL], sets.shape[1]
    waiting[0, 0], waiting[0, 1], waiting[0, 2] = node, begin, end
    size = 1
    while size > 0:
        size -= 1
        node, low, high = waiting[size, 0], waiting[size, 1], waiting[size, 2]
        while way[node] >= 0:
            if nodes[node, COLUMN] != column:
                node = way[node]
                continue
            cut = nodes[node, CUT]
            if column >= 0:
                if low <= cut < high:
                    waiting[size, 0], waiting[size, 1], waiting[size, 2] = nodes[node, RIGHT], cut + 1, high
                    size += 1
                    high = cut
                node = nodes[node, LEFT if high <= cut else RIGHT]
            else:
                some_left, some_right = False, False
                for w in range(n_words):
                    some_left = some_left or sets[size, w] & masks[cut, w] != np.uint64(0)
                    some_right = some_right or sets[size, w] & ~masks[cut, w] != np.uint64(0)
                if some_left and some_right:
                    # What goes left stays in work, one place up; the rest waits here.
                    for w in range(n_words):
                        sets[size + 1, w] = sets[size, w] & masks[cut, w]
                        sets[size, w] = sets[size, w] & ~masks[cut, w]
                    waiting[size, 0] = nodes[node, RIGHT]
                    size += 1
                node = nodes[node, LEFT if some_left else RIGHT]
        for k in range(total.shape[1]):
            adds = values[label, node, k] - values[label, leaf, k]
            if column >= 0:
                # Summed up in the end.
                total[first + low, k] += adds
                total[first + high + 1, k] -= adds
                continue
            for w in range(n_words):
                left, at = sets[size, w], first + 64 * w
                while left != np.uint64(0):
                    if left & np.uint64(1) != np.uint64(0):
                        total[at, k] += adds
                    left = left >> np.uint64(1)
                    at += 1


@compiled
def tree_moves(trees, columns, way, label, column_of, cells, out):  # type: ignore[no-untyped-def]
    """Fill out (M + 1, K) with the components if one column takes each option's cell; the last are the row's own."""
    roots, nodes, masks, values, depth, _, _ = trees
    n_columns, n_words, n_parts = len(columns) - 1, masks.shape[1], out.shape[1]
    found = out[len(column_of)]
    total = np.zeros((columns[n_columns, FIRST_CELL], n_parts))
    # Which values of each column lead along the path so far: first and last cell, or a set of categories.
    seen, reach = np.full(n_columns, -1, np.int64), np.zeros((n_columns, 2), np.int64)
    kept, sets = np.zeros((n_columns, n_words), np.uint64), np.zeros((depth + 3, n_words), np.uint64)
    every = np.zeros((n_columns, n_words), np.uint64)
    for p in range(n_columns):
        for code in range(columns[p, COUNT]):
            every[p, code // 64] |= np.uint64(1) << np.uint64(code % 64)
    path, waiting = np.zeros(depth, np.int64), np.zeros((depth + 2, 3), np.int64)
    for k in range(n_parts):
        found[k] = values[label, len(nodes), k]
    for t in range(len(roots)):
        leaf, steps = roots[t], 0
        while way[leaf] >= 0:
            path[steps] = leaf
            steps += 1
            leaf = way[leaf]
        for k in range(n_parts):
            found[k] += values[label, leaf, k]
        for i in range(steps):
            node = path[i]
            goes = way[node] == nodes[node, LEFT]
            column, cut = nodes[node, COLUMN], nodes[node, CUT]
            p = column if column >= 0 else -1 - column
            if seen[p] != t:
                seen[p] = t
                reach[p, 0], reach[p, 1] = 0, columns[p + 1, FIRST_CELL] - columns[p, FIRST_CELL] - 2
                for w in range(n_words):
                    kept[p, w] = every[p, w]
            some, begin, end = False, reach[p, 0], reach[p, 1]
            if column < 0:
                for w in range(n_words):
                    mask = masks[cut, w] if goes else ~masks[cut, w]
                    sets[0, w] = kept[p, w] & ~mask
                    kept[p, w] = kept[p, w] & mask
                    some = some or sets[0, w] != np.uint64(0)
            elif goes:
                some, begin, reach[p, 1] = end > cut, max(begin, cut + 1), min(end, cut)
            else:
                some, end, reach[p, 0] = begin <= cut, min(end, cut), max(begin, cut + 1)
            if some:
                other = nodes[node, RIGHT if goes else LEFT]
                _explore(trees, columns, way, label, leaf, other, column, begin, end, waiting, sets, total)
    for p in range(n_columns):
        if columns[p, COUNT] == 0:
            for c in range(columns[p, FIRST_CELL] + 1, columns[p + 1, FIRST_CELL]):
                for k in range(n_parts):
                    total[c, k] += total[c - 1, k]
    for o in range(len(column_of)):
        for k in range(n_parts):
            out[o, k] = found[k] + total[columns[column_of[o], FIRST_CELL] + cells[o], k]


@compiled
def _forward(layers, label, begin, width, one, two, out):  # type: ignore[no-untyped-def]
    """Fill rows of out (M, K) from `begin` on, from what leaves the first layer, one (H, width)."""
    _, weights, sizes, last = layers
    at, sums = 0, np.empty(width)
    for layer in range(1, len(sizes)):
        inputs = sizes[layer - 1]
        for i in range(sizes[layer]):
            for o in range(width):
                sums[o] = weights[at + inputs]
            for j in range(inputs):
                for o in range(width):
                    sums[o] += weights[at + j] * one[j, o]
            for o in range(width):
                two[i, o] = max(sums[o], 0.0)
            at += inputs + 1
        one, two = two, one
    inputs = last.shape[2] - 1
    for k in range(out.shape[1]):
        for o in range(width):
            sums[o] = last[label, k, inputs]
        for j in range(inputs):
            for o in range(width):
                sums[o] += last[label, k, j] * one[j, o]
        for o in range(width):
            out[begin + o, k] = sums[o]


@compiled
def _moved_sums(first, columns, place, sums, p, option, least, one):  # type: ignore[no-untyped-def]
    """Fill one (H, width) with what leaves the first layer if column p takes the places of its options."""
    begin, start = columns[p, FIRST_OPTION], columns[p, START]
    width, hot = columns[p + 1, FIRST_OPTION] - begin, columns[p, HOT] != 0
    moved = np.empty(width)
    for o in range(width):
        moved[o] = option[begin + o, PLACE] - place[p]
    for j in range(len(sums)):
        if hot:
            rest = sums[j] - first[j, start + int(place[p])]
            for o in range(width):
                one[j, o] = max(rest + first[j, start + int(option[begin + o, PLACE])], least)
        else:
            for o in range(width):
                one[j, o] = max(sums[j] + first[j, start] * moved[o], least)
    return width


@compiled
def layer_moves(layers, columns, place, label, listed, option, out):  # type: ignore[no-untyped-def]
    """Fill out (M + 1, K) with the components if a listed column takes each option's place; the last are the row's own.

    What enters the first layer of a linear model are the components themselves.
    """
    first, _, sizes, last = layers
    linear = len(sizes) == 0
    first = last[label] if linear else first
    widest, highest = 1, len(first)
    for i in range(len(listed)):
        p = listed[i]
        widest = max(widest, columns[p + 1, FIRST_OPTION] - columns[p, FIRST_OPTION])
    for i in range(len(sizes)):
        highest = max(highest, sizes[i])
    one, two, sums = np.empty((highest, widest)), np.empty((highest, widest)), np.empty(len(first))
    least = -np.inf if linear else 0.0
    for j in range(len(sums)):
        sums[j] = first[j, first.shape[1] - 1]
        for p in range(len(place)):
            start = columns[p, START]
            sums[j] += first[j, start + int(place[p])] if columns[p, HOT] != 0 else place[p] * first[j, start]
    for i in range(-1, len(listed)):
        begin, width = len(out) - 1, 1
        if i >= 0:
            begin = columns[listed[i], FIRST_OPTION]
            width = _moved_sums(first, columns, place, sums, listed[i], option, least, one)
        else:
            for j in range(len(sums)):
                one[j, 0] = max(sums[j], least)
        if linear:
            for k in range(len(sums)):
                for o in range(width):
                    out[begin + o, k] = one[k, o]
        else:
            _forward(layers, label, begin, width, one, two, out)


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
        # The best option of every listed column, and what it is worth; −∞ if there is none.
        for i in range(len(listed)):
            p = listed[i]
            value[i], best[i] = -np.inf, 0
            for o in range(columns[p, FIRST_OPTION], columns[p + 1, FIRST_OPTION]):
                worth_of = score(seen[o, 0], seen[o, 1], goal[k, 0], goal[k, 1])
                if worth_of > value[i] and option[o, PLACE] != row[1, p]:
                    value[i], best[i] = worth_of, o
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
    model, numbers, metric, loss, option, column, cells, label, target, goal, near, rounds, ways, rows, found
):  # fmt: skip
    """Search around a person; fill their rows (C, 2, P), with loss and cost (C, 2), and return how many there are.

    Beyond the first λ, `near` of them, what the person's own moves promise is tried, and nothing is moved on from.
    """
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
        base = next_row(best[:near], expanded)
        if base < 0 or step == rounds or size + WIDTH >= len(rows):
            break
        expanded[base] = True
        row = rows[base]
        _weigh(
            model, metric, loss, option, column, cells, own, row, label, target, listed, ways,
            by_column, seen, parts
        )  # fmt: skip
        count = _propose(
            columns, numbers, metric, loss, option, column, row, listed, goal if step == 0 else goal[:near], reached, label, target,
            by_column, seen, parts, promising, tried, worth
        )  # fmt: skip
        if step == 0 and n_columns > LISTED * len(goal):
            listed = np.flatnonzero(promising)
    return size


@compiled
def search_people(  # type: ignore[no-untyped-def]
    model, numbers, metric, loss, option, column, cells, label, target, goal, near, rounds, rows, found, count
):  # fmt: skip
    """Search around people, one after the other: fill count (n,) besides what is filled for each."""
    n_columns = rows.shape[3]
    way = np.full(len(model[1][1]), -1, np.int32)
    ways = (np.zeros(n_columns, np.int32), np.full(n_columns, -1, np.int32), way)
    for i in range(len(rows)):
        count[i] = _search_person(
            model, numbers, metric, loss, option[i], column, cells[i], label[i], target[i], goal, near, rounds, ways,
            rows[i], found[i]
        )  # fmt: skip
