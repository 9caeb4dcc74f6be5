# SPDX-License-Identifier: Apache-2.0
# The plots of docs/performance.md, drawn by gnuplot of what the bench has written. The same figures
# give the same files, byte for byte.

# plot_begin FILE TITLE: what all of them have.
plot_begin() {
  cat <<END
set terminal svg size 760,420 font 'sans-serif,12' background rgb 'white' name 'gantry' noenhanced
set output '$1'
set title '$2'
set key outside bottom center horizontal
set grid ytics lc rgb '#d0d0d0'
set border 3
set tics nomirror
set style line 1 lc rgb '#1b6ca8' lw 2 pt 7 ps 0.7
set style line 2 lc rgb '#c05020' lw 2 pt 5 ps 0.7
END
}

# plot_rows: all rows of the bench as `id ours peer`, and its parts as `row part ours peer`, with
# tabs, of the folder BENCH_DATA.
plot_rows() { bench_cells "$BENCH_DATA/bench.json" id ours peer; }
plot_parts() { bench_cells "$BENCH_DATA/bench-parts.json" row part ours peer; }

# plot_draw DATA LINES: gnuplot does what stdin says, where DATA has all that belongs there: a run of
# some rows leaves the plots as they are that have others, too.
plot_draw() {
  if [ "$(wc -l <"$1")" -lt "$2" ]; then
    cat >/dev/null
  else
    gnuplot
  fi
}

# Memory against the number of idle containers.
plot_memory() {
  local data="$1/memory"
  plot_rows | awk -F '\t' '$1 ~ /^memory-[0-9]+$/ && $2 != "" && $3 != "" {
    n = $1; sub(/memory-/, "", n); printf "%s\t%.3f\t%.3f\n", n, $2 / 1024, $3 / 1024 }' |
    sort -n >"$data"
  {
    plot_begin "$2/memory.svg" 'Memory beside the workload, by the number of idle containers'
    cat <<END
set logscale xy
set xlabel 'containers'
set ylabel 'MiB (PSS)'
plot '$data' using 1:2 with linespoints ls 1 title 'gantry', \
     '' using 1:3 with linespoints ls 2 title 'stock shim'
END
  } | plot_draw "$data" 3
}

# How long a State takes: half of them, and 99 of 100.
plot_latency() {
  local data="$1/latency"
  plot_rows | awk -F '\t' '
    $1 ~ /^state-[0-9]+(-p99)?$/ && $2 != "" && $3 != "" {
      n = $1; sub(/^state-/, "", n)
      if (sub(/-p99$/, "", n)) { ours99[n] = $2; peer99[n] = $3 } else { ours[n] = $2; peer[n] = $3 }
    }
    END { for (n in ours) if (n in ours99) printf "%s\t%s\t%s\t%s\t%s\n", n, ours[n], ours99[n], peer[n], peer99[n] }' |
    sort -n >"$data"
  {
    plot_begin "$2/latency.svg" 'How long a State takes: p50 to p99, by the number of connections'
    cat <<END
set logscale y
set xlabel 'connections'
set ylabel 'microseconds'
set xrange [-0.5:*]
set offsets 0, 0.5, 0, 0
plot '$data' using (\$0 - 0.08):2:2:3:xticlabels(1) with yerrorbars ls 1 title 'gantry', \
     '' using (\$0 + 0.08):4:4:5 with yerrorbars ls 2 title 'stock shim'
END
  } | plot_draw "$data" 3
}

# What a user waits for.
plot_times() {
  local data="$1/times"
  plot_rows | awk -F '\t' '
    BEGIN { split("shim-start exec-crun exec-runc life-crun life-runc run-crun run-runc pod-sandbox pod-start", order, " ") }
    $2 != "" && $3 != "" { ours[$1] = $2; peer[$1] = $3 }
    END { for (i = 1; i in order; i++) if (order[i] in ours) printf "%s\t%s\t%s\n", order[i], ours[order[i]], peer[order[i]] }' >"$data"
  {
    plot_begin "$2/times.svg" 'What a user waits for'
    cat <<END
set style data histograms
set style histogram clustered gap 1
set style fill solid
set ylabel 'milliseconds'
set yrange [0:*]
set xtics rotate by -30
plot '$data' using 2:xticlabels(1) ls 1 title 'gantry', '' using 3 ls 2 title 'stock shim'
END
  } | plot_draw "$data" 9
}

# The longest wait for a State while engine or keeper is replaced: the median of the rounds, and the
# worst of them.
plot_gaps() {
  local data="$1/gaps"
  {
    plot_parts | awk -F '\t' '$1 ~ /^gap-(crash|upgrade|keeper)-[0-9]+$/ && $2 == "median of the rounds" { print $1 "\tmedian\t" $3 "\t" $4 }'
    plot_rows | awk -F '\t' '$1 ~ /^gap-(crash|upgrade|keeper)-[0-9]+$/ && $2 != "" { print $1 "\tworst\t" $2 "\t" $3 }'
  } | awk -F '\t' '
    { split($1, part, "-"); key = part[2] " " part[3]; value[key " " $2] = $3; quiet[part[3] " " $2] = $4; count[part[3]] }
    END {
      for (n in count) {
        line = n
        for (i = 1; i <= 3; i++) {
          what = i == 1 ? "crash" : i == 2 ? "upgrade" : "keeper"
          line = line "\t" value[what " " n " median"] "\t" value[what " " n " worst"]
        }
        if (split(line "\t" quiet[n " median"] "\t" quiet[n " worst"], cells, "\t") == 9 && line !~ /\t\t|\t$/)
          print line "\t" quiet[n " median"] "\t" quiet[n " worst"]
      }
    }' | sort -n >"$data"
  {
    plot_begin "$2/gaps.svg" 'The longest wait for a State: median to worst of ten rounds'
    cat <<END
set style line 3 lc rgb '#3a8f3a' lw 2 pt 9 ps 0.8
set style line 4 lc rgb '#808080' lw 2 pt 4 ps 0.7
set xlabel 'containers'
set ylabel 'milliseconds'
set xrange [-0.5:*]
set yrange [0:*]
set offsets 0, 0.5, 0, 0
plot '$data' using (\$0 - 0.18):2:2:3:xticlabels(1) with yerrorbars ls 2 title 'kill -9 of the engine', \
     '' using (\$0 - 0.06):4:4:5 with yerrorbars ls 1 title 'upgrade of the engine', \
     '' using (\$0 + 0.06):6:6:7 with yerrorbars ls 3 title 'upgrade of the keeper', \
     '' using (\$0 + 0.18):8:8:9 with yerrorbars ls 4 title 'undisturbed'
END
  } | plot_draw "$data" 3
}

# bench_plots DATA OUT: draws what bench.json and bench-parts.json in the folder DATA have the
# figures of, into the folder OUT.
bench_plots() {
  local BENCH_DATA="$1" out="$2" scratch
  command -v gnuplot >/dev/null || { say "no gnuplot: the plots stay as they are"; return 0; }
  mkdir -p "$out"
  scratch=$(mktemp -d)
  plot_memory "$scratch" "$out"
  plot_latency "$scratch" "$out"
  plot_times "$scratch" "$out"
  plot_gaps "$scratch" "$out"
  rm -rf "$scratch"
}
