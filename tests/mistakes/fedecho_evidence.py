"""Mistakes in lesson 08."""

MISTAKES = {
    "08.1": [
        "def lead(table, ours):\n    return table.loc[ours] - table.max()",  # its own rows as rivals
        "def lead(table, ours):\n    return table.loc[ours] - table.drop(index=ours).mean()",
        "def lead(table, ours):\n    return table.loc[ours].max() - table.drop(index=ours).max()",
        "def lead(table, ours):\n    return table.loc[ours] - table.iloc[0]",  # FedBuff, the weakest
    ],
    "08.2": [
        "def is_deaf(stored, heard, stragglers):\n    return not any(here & stragglers for here in stored)",
        "def is_deaf(stored, heard, stragglers):\n"
        "    return all(here == so_far - stragglers for here, so_far in zip(stored, heard, strict=True))",
    ],
    "08.3": ['answer = "both"', 'answer = "neither"', 'answer = "natural"'],
}
