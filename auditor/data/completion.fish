# Completion of zaudit for fish. It asks "zaudit completion --answer", which changes nothing.
function __zaudit_answers
    set -l before (commandline -opc)
    set -l word (commandline -ct) # none where the word is empty, which in quotes is one
    for line in ($before[1] completion fish --answer -- $before[2..] "$word" 2>/dev/null)
        set -l fields (string split \t -- $line)
        switch $fields[1]
            case file dir
                __fish_complete_path (commandline -ct)
            case plain
                printf '%s\t%s\n' $fields[2] "$fields[3]"
        end
    end
end
complete --no-files --command zaudit --arguments '(__zaudit_answers)'
