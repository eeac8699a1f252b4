"""The Jinja template of a newcomer's page; pictures and styles are inside, and browsers may load nothing else."""

TEMPLATE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<title>{{ title }} in the league</title>
<style>
body { max-width: 84rem; margin: 0 auto; padding: 0 1rem 4rem; font: 16px/1.5 system-ui, sans-serif; color: #111827; }
h1 { margin: 1.2rem 0 .4rem; } h2 { margin-top: 2.6rem; border-bottom: 1px solid #d1d5db; } h3 { margin-top: 2rem; }
p, li { max-width: 46rem; } .note { color: #4b5563; font-size: .92rem; }
.wide { overflow-x: auto; } img { max-width: 100%; height: auto; }
table { border-collapse: collapse; font-size: .9rem; }
th, td { padding: .25rem .6rem; border-bottom: 1px solid #e5e7eb; text-align: left; vertical-align: top; }
th { white-space: nowrap; background: white; } td.number, th.number { text-align: right; white-space: nowrap; }
tr.newcomer { background: #fff7ed; font-weight: 600; } tr.newcomer th { background: #fff7ed; color: {{ accent }}; }
th[scope=row] { position: sticky; left: 0; }
.better { color: #15803d; font-weight: 600; } .worse { color: #b91c1c; font-weight: 600; }
.equivalent { color: #1d4ed8; }
.warning { border-left: 4px solid {{ accent }}; padding-left: .7rem; }
@media (max-width: 48rem) { .wide::before { content: "The table goes on to the right.";
color: #4b5563; font-size: .85rem; } }
.open { color: #6b7280; } td.bar { padding: .25rem .2rem; }
</style>
<h1>{{ title }} in the league</h1>
<p class="note">{{ file }}, code {{ outcome.newcomer.entry.digest }}. {{ how_many(places|length, "place") }} (a workload
under a delay law), {{ how_many(first.seeds|length, "seed") }} each, every run with {{ first.updates }} client updates.
{%- if outcome.quick %} Entered with --quick, so only on the first workload, and only tuned.{% endif %}</p>
{% for column in columns %}
<p>{{ column.heading }}, {{ title }} against each method in each place,
{{ how_many(column.comparisons, "comparison") }}. After the same number of client updates: {{ column.at_end }}. After
the same virtual time, when the first of the two runs ends: {{ column.in_time }}.</p>
{% endfor %}
{% if outcome.newcomer.untried %}
<p class="warning">Not equally: {{ outcome.newcomer.untried }}.</p>
{% endif %}
{% if outcome.quick %}
<p class="warning">Not equally: with --quick its grid did not grow, but those of the field did if the best lay on an
edge.</p>
{% endif %}
{% if outcome.earlier %}
<p class="warning">Look {{ outcome.earlier|length + 1 }}: other code of this name has been entered
{{ how_many(outcome.earlier|length, "time") }} before and seen the same seeds ({{ outcome.earlier|join(", ") }}). No
interval here accounts for it.</p>
{% endif %}
{% if missing %}
<p><strong>The field is not complete.</strong> Not recorded, so not ranked there: {% for method, where in missing %}
{{ method }} in {{ where|join(", ") }}{{ "." if loop.last else "; " }}
{%- endfor %}</p>
{% endif %}

<details open><summary>How to read the tables</summary>
<ul class="note"><li>Accuracy is the mean over seeds of a run's last five tests, in %, with its own 95% interval.</li>
<li>Difference is {{ title }} minus the method, in points, seed by seed, after the same number of client updates, with
its 95% interval. The grey band of its drawing is ± 1 point.</li>
<li>In equal time is the same difference when the first of the two runs ends, from the last test of each until then.
Green and red mean the same as in the fifth column.</li>
<li>Time is the median virtual time to the target, in the units of the delay law. Its ratio is the method's time
divided by {{ title }}'s.</li>
<li>Decided by says about how many seeds would decide if mean and deviation stayed the same.</li></ul>
<p class="note">Verdicts are corrected for the number of methods. Intervals are not.</p>
</details>

{% for column in columns %}
<h2>{{ column.heading }}</h2>
{% if column.ranks %}
<p>{{ title }} has mean rank {{ "%.1f"|format(column.rank) }} of {{ column.ranks.ranks|length }}, 1 being best, over
{{ how_many(column.ranks.blocks, "seed") }} of {{ how_many(column.places|length, "place") }}. The critical difference,
{{ "%.1f"|format(column.ranks.critical) }}, distinguishes
{%- set apart = column.ranks.ranks|length - 1 - column.near|length %}
{% if not column.near %} it from all others.
{% elif not apart %} it from none of the others.
{% else %} {{ title }} from {{ apart }} of the others, but not from {{ listed(column.near) }}.
{% endif %}</p>
<img src="{{ column.picture }}" alt="Mean ranks, best first:
{%- for method, rank in column.ranks.ranks.items() %}
 {{ method|named }} {{ "%.1f"|format(rank) }}{{ "" if loop.last else "," }}
{%- endfor %}">
<p class="note">Bars join methods that Nemenyi's critical difference at 5% cannot distinguish. It treats seeds of one
place as independent, and places as drawn at random. Neither is true, so it is smaller than it should be.
{%- if column.left_out %} Some place lacks these methods or their seeds, so they are not ranked:
{{ column.left_out|map("named")|join(", ") }}.{% endif %}</p>
{% else %}<p>Nothing can be ranked yet.</p>
{% endif %}
{% for place in column.places %}
<h3>{{ place.name }}, {{ column.short }}</h3>
<p>Task {{ place.config.task }}, delay law {{ place.config.delay }}.
{% if place.others %}Of {{ how_many(place.others, "method") }}: {{ title }} is {{ place.counts }}.
{%- else %}No other method was run here.{% endif %}</p>
<p class="note">Drawn from −{{ place.scale }} to +{{ place.scale }} points. Target:
{{ place.target if place.known else "no target, as FedBuff was not run" }}.</p>
<div class="wide" role="region" aria-label="standings in {{ place.name }}, {{ column.short }}" tabindex="0"><table>
<thead><tr><th scope="col">method</th><th scope="col" class="number">accuracy</th>
<th scope="col" class="number">difference</th><th scope="col">worse · better</th>
<th scope="col">{{ title }} is</th><th scope="col" class="number">decided by</th>
<th scope="col" class="number">in equal time</th>
<th scope="col" class="number">time</th><th scope="col" class="number">ratio of times</th></tr></thead>
<tbody>{% for row in place.rows %}
<tr{% if row.newcomer %} class="newcomer"{% endif %}><th scope="row">{{ row.title }}</th>
<td class="number">{{ row.accuracy }}</td><td class="number">{{ row.difference }}</td>
<td class="bar">{% if row.bar %}
<svg viewBox="0 0 200 14" width="150" height="14" role="img" aria-label="{{ row.difference }}">
<rect x="{{ row.bar.band_from }}" y="0" width="{{ row.bar.band }}" height="14" fill="#e5e7eb"/>
<line x1="100" x2="100" y1="0" y2="14" stroke="#9ca3af"/>
<line x1="{{ row.bar.low }}" x2="{{ row.bar.high }}" y1="7" y2="7" stroke="{{ row.bar.colour }}" stroke-width="2.5"/>
<circle cx="{{ row.bar.mean }}" cy="7" r="3.5" fill="{{ row.bar.colour }}"/></svg>{% endif %}</td>
<td class="{{ row.verdict.split(' ')[0] }}">{{ row.verdict }}</td><td class="number">{{ row.to_decide }}</td>

<td class="number {{ row.verdict_in_time.split(' ')[0] }}">{{ row.in_time }}</td>
<td class="number">{{ row.time }}</td><td class="number">{{ row.ratio }}</td></tr>
{% endfor %}</tbody></table></div>
<p class="note">{% if place.never %}Not at the target with every seed: {{ place.never }}. Such a run is censored at its
end. A ratio of times with ≥ or ≤ has no bound on the other side.
{%- elif place.known %}All runs reached the target.{% endif %}</p>
<img src="{{ place.curves }}"
 alt="Test accuracy of {{ place.shown|map("named")|join(", ") }}, over client updates and virtual time.">
<p class="note">{% if place.shown|length > 1 %}The curves show {{ title }} (the thick line), the {{ nearest }} methods
whose accuracy is nearest to its own, and FedBuff. Lines are means over seeds, and bands go from the lowest to the
highest seed. The left panel is over client updates, and the right one over virtual time, until a fifth after
{{ title }} ends.{% endif %}</p>
{% endfor %}
{% endfor %}

<h2>What it costs</h2>
<p class="note">There are N clients, M_c of them in flight, a buffer of M, and U unlabelled samples. The column kB is
the size of the models that the server holds at most in {{ first.name }}. It leaves out generators, pools of samples and
labelled sets.</p>
<div class="wide" role="region" aria-label="costs" tabindex="0"><table>
<thead><tr><th scope="col">method</th><th scope="col">the server stores</th><th scope="col" class="number">kB</th>
<th scope="col">clients are asked for, beyond an update</th><th scope="col">data on the server</th></tr></thead>
<tbody>{% for row in costs %}
<tr{% if row.method == outcome.newcomer.entry.name %} class="newcomer"{% endif %}>
<th scope="row">{{ row.method|named }}</th><td>{{ row.stores }}</td>
<td class="number">{{ "{:,.0f}".format(row.kilobytes) }}
{%- if row.logits_kilobytes %} + {{ "{:,.0f}".format(row.logits_kilobytes) }} for each sample's logits{% endif %}</td>
<td>{{ row.asks }}</td><td>{{ row.data }}</td></tr>
{% endfor %}</tbody></table></div>

<h2>What was tried</h2>
<p>Every method may try the same number of combinations in a place,
{% for column in columns %}{{ column.tries }} {{ column.short }}{{ "" if loop.last else " and " }}{% endfor %}, with the
seeds {{ tuning_seeds }}, which no comparison uses. If the best lies on an edge, its grid grows, at most twice. The
column on an edge lists options whose chosen value is the smallest or largest tried, so that a better one may lie
beyond.
{% if outcome.in_column("printed") %}At a fixed server rate, clients' rates are tried with server settings that a paper
prints, or with rate 1. {{ title }} has its defaults.{% endif %}</p>
{% for column in columns %}{% for place in column.places %}
<details><summary>{{ place.name }}, {{ column.short }}</summary><div class="wide"><table>
<thead><tr><th scope="col">method</th><th scope="col" class="number">combinations</th>
<th scope="col" class="number">runs</th><th scope="col">chosen</th>
<th scope="col">on an edge</th></tr></thead><tbody>{% for row in place.tried %}
<tr{% if row.newcomer %} class="newcomer"{% endif %}><th scope="row">{{ row.title }}</th>
<td class="number">{{ row.combinations }}</td><td class="number">{{ row.runs }}</td><td>{{ row.chosen }}</td>
<td>{{ row.edges }}</td></tr>
{% endfor %}</tbody></table></div></details>
{% endfor %}{% endfor %}

<h2>What would change a verdict</h2>
<ul><li>More seeds: {{ how_many(open|length, "comparison") }} {{ "is" if open|length == 1 else "are" }} open.
{% if soon %}If means and deviations stayed the same, up to {{ soon|max }} seeds would decide {{ soon|length }} of them.
{% endif %}</li>
<li>Other places: a place is one workload and one law. A verdict holds for it and for no other.</li>
<li>Entering again: if you change {{ title }} after a look at this page and enter it again, you look at the same seeds
again. The next page counts the looks. After many looks, use seeds and places of your own.</li>
{% if outcome.quick %}
<li>The whole league: without --quick there are all places and both columns, and the grid may grow.</li>
{% endif %}</ul>
<h2>What was not compared</h2>
<ul>{% for line in not_compared %}<li>{{ line }}</li>{% endfor %}</ul>
</html>
"""
