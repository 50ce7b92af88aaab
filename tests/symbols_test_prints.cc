// What no library of ours may do, to show that symbols_test.sh sees it.

#include <cstdlib>
#include <iostream>

void PrintAndExit() {
  std::cout << "printed";
  std::exit(0);
}
