#compdef zaudit
# Completion of zaudit for zsh. It asks "zaudit completion --answer", which changes nothing.
_zaudit() {
    local line files=
    local -a fields found
    for line in "${(@f)$("$words[1]" completion zsh --answer -- "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
        fields=("${(@ps:\t:)line}")
        case $fields[1] in
            file|dir) files=yes ;;
            plain) found+=("${fields[2]//:/\\:}:$fields[3]") ;;
        esac
    done
    if [[ -n $files ]]; then _files; else _describe -V zaudit found; fi
}
if [[ ${funcstack[1]} = _zaudit ]]; then _zaudit "$@"; else compdef _zaudit zaudit; fi
