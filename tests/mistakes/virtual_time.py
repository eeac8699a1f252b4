"""What students get wrong in lesson 01."""

CLOCK = """def my_clock(durations, buffer_size, versions, policy):
    heap = [(d, client, client, 0) for client, d in enumerate(durations)]
    heapq.heapify(heap)
    version, reports, arrivals = 0, 0, []
    while version < versions:
        now, number, client, start = heapq.heappop(heap)
        arrivals.append((now, client, version - start))
        reports += 1
        {before}version = reports // buffer_size
        heapq.heappush(heap, (now + durations[client], {number}, client, version))
    return arrivals
"""
COUNTS_ITSELF = """def my_clock(durations, buffer_size, versions, policy):
    heap = [(d, client, client, 0) for client, d in enumerate(durations)]
    heapq.heapify(heap)
    version, reports, arrivals = 0, 0, []
    while version < versions:
        now, number, client, start = heapq.heappop(heap)
        before = version
        reports += 1
        version = reports // buffer_size
        arrivals.append((now, client, version - start))
        sent = before if policy == "before_agg" else version
        heapq.heappush(heap, (now + durations[client], len(durations) + reports, client, sent))
    return arrivals
"""
SLOTS = """def reports(durations, in_flight):
    def missing(rate):
        return (rate * durations / (1 + rate * durations)).sum() - in_flight

    rate = brentq(missing, 1e-9, 1e9)
    return rate * durations / (1 + rate * durations)
"""
MISTAKES = {
    "01.1": [
        CLOCK.format(before="", number="len(durations) + reports"),  # always after_agg
        CLOCK.format(before="", number="client").replace("version - start))", "version))"),
        COUNTS_ITSELF,
    ],
    "01.2": ["answer = (5, 100, 2, 0)", "answer = (5, 99, 3, 0)", "answer = (5, 99, 2, 1)"],
    "01.3": [
        "def reports(durations, in_flight):\n    return in_flight / len(durations) / durations",  # all equally busy
        "def reports(durations, in_flight):\n    return 1 / durations",
        SLOTS,
    ],
    "01.4": ['answer = ("faster", "faster")', 'answer = ("fewer", "faster")', 'answer = ("faster", "fewer")'],
}
