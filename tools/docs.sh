#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# ./run docs [DIR]: README, docs/, the pages of plugins and the others of this tree as a site, in DIR
# (build/docs). It fails where a link leads nowhere. The site needs no network, and no server but for
# its search.
set -euo pipefail
. "$(dirname "$(readlink -f "$0")")/lib/ui.sh"
. "$GANTRY_ROOT/tools/lib/docs.sh"

case "${1:-}" in
  -*) die "'$1' is not understood: ./run docs [DIR]" ;;
esac
site=$(readlink -m "${1:-$GANTRY_ROOT/build/docs}")
pages="$GANTRY_ROOT/build/docs-pages"
# What is in there will be removed.
[ -z "$(ls -A "$site" 2>/dev/null)" ] || [ -e "$site/search/search_index.json" ] ||
  die "'$site' has something else than an earlier site in it"
"$GANTRY_ROOT/tools/setup" docs
cd "$GANTRY_ROOT"
step docs-collect "pages" docs_collect "$pages"
step docs-build "site, and its links" docs_build "$pages" "$site"
step docs-loads "the site loads nothing from elsewhere" docs_check_loads "$site"
say "the site: $site/index.html"
