# Completion of tow for bash 4.4 or newer, printed by `tow completions bash`. Each Tab asks `tow`.
_tow() {
    local program answer
    program=$(type -P -- "$1") || program=tow
    mapfile -t answer < <("$program" __complete bash "${COMP_LINE:0:COMP_POINT}" "$2" 2> /dev/null)
    COMPREPLY=("${answer[@]:1}")
    # Files come where nothing of ours fits, because bash quotes all of them or none.
    if [[ ${#COMPREPLY[@]} == 0 ]]; then
        case ${answer[0]-} in
            files) mapfile -t COMPREPLY < <(compgen -f -- "$2") ;;
            folders) mapfile -t COMPREPLY < <(compgen -d -- "$2") ;;
            programs) mapfile -t COMPREPLY < <(compgen -c -- "$2" | sort -u) ;;
        esac
        compopt -o filenames
    fi
    if [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *[:=/] ]]; then
        compopt -o nospace
    fi
}
complete -o nosort -F _tow tow
