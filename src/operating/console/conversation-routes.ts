import { ConversationDetails } from '#operating/operations/conversation.schema.ts';
import {
  conversationActions,
  conversationList,
  readConversation,
} from '#operating/operations/conversations.ts';
import { listRoutes } from './pages.ts';
import { actionRoutes, type ConsoleRoute, detailRoute } from './route.ts';

export const conversationRoutes: ConsoleRoute[] = [
  ...listRoutes(conversationList),
  detailRoute('conversations', 'messages.read', ConversationDetails, readConversation),
  ...actionRoutes(conversationActions),
];
