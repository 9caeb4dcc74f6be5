# SPDX-License-Identifier: Apache-2.0
# The pages of the tree as a site, by mkdocs with the theme Material, which is in a virtual
# environment below $GANTRY_CACHE. Source it after ui.sh.

DOCS_REQUIREMENTS="$GANTRY_ROOT/tools/docs/requirements.txt"
DOCS_PYTHON=/usr/bin/python3

# One for what is pinned, and for the Python that it is installed with.
docs_venv() {
  echo "$GANTRY_CACHE/docs/$({ cat "$DOCS_REQUIREMENTS" && "$DOCS_PYTHON" -V; } | sha256sum | cut -c1-12)"
}

docs_install() {
  local venv="$1"
  rm -rf "$venv" && "$DOCS_PYTHON" -m venv "$venv" &&
    retry 3 "$venv/bin/pip" install --no-cache-dir --require-hashes --only-binary :all: \
      -r "$DOCS_REQUIREMENTS" &&
    "$venv/bin/mkdocs" --version && touch "$venv/complete"
}

provide_docs() {
  local venv
  venv=$(docs_venv)
  [ -e "$venv/complete" ] || step docs-install "mkdocs from PyPI" docs_install "$venv"
}

# docs_pages: what is Markdown, but for GitHub's forms.
docs_pages() { git -c safe.directory='*' ls-files -- '*.md' ':!.github'; }

# docs_linked PAGE: the files of the tree that it links to.
docs_linked() {
  local folder target
  folder=$(dirname "$1")
  { grep -oE '\]\([^)#[:space:]]+' "$1" || true; } | sed 's/^](//' | while read -r target; do
    target=$(realpath -m --relative-to=. -- "$folder/$target")
    [[ "$target" = ../* ]] || [ ! -f "$target" ] || printf '%s\n' "$target"
  done
}

# docs_collect FOLDER: pages and what they link to, there as they are in the tree: then a link is the
# same on the site as it is in a clone.
docs_collect() {
  local page
  rm -rf "$1"
  mkdir -p "$1"
  docs_pages | while read -r page; do
    printf '%s\n' "$page"
    docs_linked "$page"
  done | sort -u | xargs -r -d '\n' cp --parents -t "$1" --
}

# docs_build PAGES SITE: fails of a link, or a heading, that is not there, and of a page that the
# navigation does not have.
docs_build() {
  GANTRY_DOCS_PAGES="$1" "$(docs_venv)/bin/mkdocs" build --strict --clean \
    -f "$GANTRY_ROOT/tools/docs/mkdocs.yml" -d "$2"
}

# docs_check_loads SITE: no page has a browser load anything from another place.
docs_check_loads() {
  ! grep -rnoE --include='*.html' '<(script|img|iframe|source|link)[^>]* (src|href)="?(https?:)?//[^>]*>' "$1"
}
